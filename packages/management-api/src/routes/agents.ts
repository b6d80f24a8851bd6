import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import { defineManagementRoute, STRICT } from './route.ts'

export const agentsRoute = defineManagementRoute({
  paths: ['/api/agents'],
  summary: 'The registered agents, when they were last heard of, and the requests that this node has with them.',
  query: Type.Object(pagingParameters, STRICT),
  data: pageSchema(
    Type.Object({
      agent_id: Type.String(),
      name: Type.String(),
      version: Type.String(),
      url: Type.String(),
      registered_by: Type.String({ description: 'The owner; empty when there is none.' }),
      registered_at: Type.String({ description: 'ISO 8601.' }),
      last_seen: Type.String({ description: 'The last registration or heartbeat, ISO 8601.' }),
      expires_at: Type.Union([Type.String(), Type.Null()], {
        description: 'When it expires unless it is heard of again, ISO 8601; null when agents do not expire.',
      }),
      is_alive: Type.Boolean({ description: 'False when its time is over and it is about to be removed.' }),
      in_flight: Type.Integer({ minimum: 0, description: 'Requests and streams that this node has with it.' }),
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
