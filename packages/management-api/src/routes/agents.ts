import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AgentInstanceStatus, AgentProbe, AgentStatus } from '../ports.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

const EXPIRES_AT = Type.Union([Type.String(), Type.Null()], {
  description: 'The time of expiry without another heartbeat, ISO 8601; null if agents do not expire.',
})

const IN_FLIGHT = Type.Integer({ minimum: 0, description: 'Requests and streams under way from this node.' })

function expiry({ expires_at }: Pick<AgentStatus, 'expires_at'>): string | null {
  return expires_at === null ? null : isoTime(expires_at)
}

function isAlive({ expires_at }: Pick<AgentStatus, 'expires_at'>): boolean {
  return expires_at === null || expires_at > Date.now()
}

function shownInstance(instance: AgentInstanceStatus) {
  const { instance_id, url, registered_at, last_seen, in_flight } = instance
  return {
    instance_id,
    url,
    registered_at: isoTime(registered_at),
    last_seen: isoTime(last_seen),
    expires_at: expiry(instance),
    is_alive: isAlive(instance),
    in_flight,
  }
}

function shownProbe({ at, error }: AgentProbe) {
  const shown = { status: error === undefined ? ('ok' as const) : ('failing' as const), last_probe: isoTime(at) }
  return error === undefined ? shown : { ...shown, error }
}

function shownAgent(agent: AgentStatus) {
  const { probe } = agent
  const shown = {
    agent_id: agent.agent_id,
    name: agent.name,
    version: agent.version,
    url: agent.url,
    registered_by: agent.registered_by,
    registered_at: isoTime(agent.registered_at),
    last_seen: isoTime(agent.last_seen),
    expires_at: expiry(agent),
    is_alive: isAlive(agent),
    in_flight: agent.in_flight,
    ...(probe === undefined ? {} : { probe: shownProbe(probe) }),
  }
  const { instances = [] } = agent
  return instances.length === 0 ? shown : { ...shown, instances: instances.map(shownInstance) }
}

export const agentsRoute = defineManagementRoute({
  path: '/api/agents',
  summary: 'The registered agents, with their last heartbeat and the requests under way from this node.',
  query: Type.Object(pagingParameters, STRICT),
  data: pageSchema(
    Type.Object({
      agent_id: Type.String(),
      name: Type.String(),
      version: Type.String(),
      url: Type.String(),
      registered_by: Type.String({ description: 'The ClientID of the owner; empty if there is none.' }),
      registered_at: Type.String({ description: 'The time of the registration, ISO 8601.' }),
      last_seen: Type.String({ description: 'The last registration or heartbeat, ISO 8601.' }),
      expires_at: EXPIRES_AT,
      is_alive: Type.Boolean({ description: 'False if the agent has expired and will be removed.' }),
      in_flight: IN_FLIGHT,
      probe: Type.Optional(
        Type.Object(
          {
            status: Type.Enum(['ok', 'failing']),
            last_probe: Type.String({ description: 'The time of the last probe, ISO 8601.' }),
            error: Type.Optional(Type.String({ description: 'The reason why the card could not be read or used.' })),
          },
          { description: 'The last probe of the card that the agent serves; absent for agents with heartbeats.' },
        ),
      ),
      instances: Type.Optional(
        Type.Array(
          Type.Object({
            instance_id: Type.String(),
            url: Type.String(),
            registered_at: Type.String({ description: 'The time of the first registration, ISO 8601.' }),
            last_seen: Type.String({ description: 'The last registration or heartbeat, ISO 8601.' }),
            expires_at: EXPIRES_AT,
            is_alive: Type.Boolean({ description: 'False if the instance has expired and will be removed.' }),
            in_flight: IN_FLIGHT,
          }),
          { description: 'The instances of the agent; absent if it was registered without instances.' },
        ),
      ),
    }),
  ),
  async run(query, { services }) {
    const agents = (await services.agents?.list()) ?? []
    const page = pageOf(agents, ({ agent_id }) => agent_id, query)
    return { ...page, items: page.items.map(shownAgent) }
  },
})
