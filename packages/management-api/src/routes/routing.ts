import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from './route.ts'

/** The most rules in the answer, which is the most that a table can have. */
const MAX_RULES = 1_000

export const routingRoute = defineManagementRoute({
  path: '/api/routing',
  summary: 'The routing table that is in force on this node.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    rules: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0, description: 'The position in the table; the first rule is 0.' }),
        key: Type.String({ description: 'The condition.' }),
        key_type: Type.Unsafe<'regex' | 'cesql'>({
          type: 'string',
          enum: ['regex', 'cesql'],
          description:
            'regex: the key must match the whole name of the channel. cesql: the key is a CESQL expression for the attributes of the message.',
        }),
        targets: Type.Array(
          Type.Object({
            type: argument.channelType('The type of the target.'),
            channel: Type.String({ description: 'The name of the target, which can contain attributes in braces.' }),
          }),
        ),
      }),
      { description: 'Empty without a routing table.', maxItems: MAX_RULES },
    ),
  }),
  run(_query, { services }) {
    const rules = services.routing?.table.rules ?? []
    return {
      rules: rules.map(({ index, key, keyType, targets }) => ({
        index,
        key,
        key_type: keyType,
        targets: targets.map(({ type, channel }) => ({ type, channel: channel.source })),
      })),
    }
  },
})
