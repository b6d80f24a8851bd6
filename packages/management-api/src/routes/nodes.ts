import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'

const unknownOfOthers = <Value extends Type.TSchema>(value: Value) =>
  Type.Union([value, Type.Null()], { description: 'Null for another node: ask it.' })

export const nodesRoute = defineManagementRoute({
  path: '/api/nodes',
  summary: 'The node that answers, and the other nodes of the cluster that it hears.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    items: Type.Array(
      Type.Object({
        id: Type.Union([Type.String(), Type.Null()], {
          description:
            'The id of another node in its messages, which changes with each start; null for the node that answers.',
        }),
        node: Type.String({ description: 'The host name; empty for a node of an older version.' }),
        version: Type.String({ description: 'Empty for a node of an older version.' }),
        answers: Type.Boolean({ description: 'True for the node that answers, which is the first.' }),
        engine: Type.String(),
        ready: unknownOfOthers(Type.Boolean()),
        healthy: unknownOfOthers(Type.Boolean()),
        uptime_seconds: unknownOfOthers(Type.Number({ minimum: 0 })),
        last_seen: Type.String({
          description: 'The last message of the node, ISO 8601. A node that is silent for 7 s is left out.',
        }),
      }),
    ),
  }),
  async run(_query, { environment, services }) {
    const { node, version, engine, ready, healthy, uptime_seconds } = await environment.node()
    const others = services.broker
      .otherNodes()
      .toSorted((a, b) => (a.name < b.name || (a.name === b.name && a.id < b.id) ? -1 : 1))
    return {
      items: [
        {
          id: null,
          node,
          version,
          answers: true,
          engine,
          ready,
          healthy,
          uptime_seconds,
          last_seen: isoTime(Date.now()),
        },
        ...others.map((other) => ({
          id: other.id,
          node: other.name,
          version: other.version,
          answers: false,
          engine,
          ready: null,
          healthy: null,
          uptime_seconds: null,
          last_seen: isoTime(other.lastSeen),
        })),
      ],
    }
  },
})
