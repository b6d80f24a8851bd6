import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

export const agentsRoute = defineManagementRoute({
  paths: ['/api/agents'],
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
      expires_at: Type.Union([Type.String(), Type.Null()], {
        description: 'The time of expiry without another heartbeat, ISO 8601; null if agents do not expire.',
      }),
      is_alive: Type.Boolean({ description: 'False if the agent has expired and will be removed.' }),
      in_flight: Type.Integer({
        minimum: 0,
        description: 'Requests and streams under way from this node to the agent.',
      }),
    }),
  ),
  async run(query, { services }) {
    const agents = (await services.agents?.list()) ?? []
    const page = pageOf(agents, ({ agent_id }) => agent_id, query)
    return {
      ...page,
      items: page.items.map((agent) => ({
        agent_id: agent.agent_id,
        name: agent.name,
        version: agent.version,
        url: agent.url,
        registered_by: agent.registered_by,
        registered_at: isoTime(agent.registered_at),
        last_seen: isoTime(agent.last_seen),
        expires_at: agent.expires_at === null ? null : isoTime(agent.expires_at),
        is_alive: agent.expires_at === null || agent.expires_at > Date.now(),
        in_flight: agent.in_flight,
      })),
    }
  },
})
