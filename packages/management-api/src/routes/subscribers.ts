import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AttachedClient } from '../statistics/attachments.ts'
import { defineManagementRoute, STRICT } from './route.ts'

/** The most entries in an answer. */
const MAX_CLIENTS = 1_000

export const subscribersRoute = defineManagementRoute({
  path: '/api/subscribers',
  summary: 'The subscribers, responders and waiting receivers of a channel on this node, by ClientID.',
  query: Type.Object(
    {
      type: argument.channelType('The type of the channel.'),
      channel: Type.String({ description: 'The name of the channel.', minLength: 1, maxLength: 512 }),
    },
    STRICT,
  ),
  data: Type.Object({
    node: Type.String({ description: 'The node whose clients these are.' }),
    items: Type.Array(
      Type.Object({
        client_id: Type.String(),
        kind: Type.Unsafe<AttachedClient['kind']>({
          type: 'string',
          enum: ['subscriber', 'responder', 'receiver'],
          description: 'receiver: a receive that waits for a message of the queue.',
        }),
        pattern: Type.Union([Type.String(), Type.Null()], {
          description: 'The pattern of the subscription; null if it names the channel.',
        }),
        group: Type.Union([Type.String(), Type.Null()], { description: 'The consumer group.' }),
        count: Type.Integer({ minimum: 1, description: 'The number of subscriptions or waiting receives.' }),
      }),
      { description: `By ClientID, at most ${MAX_CLIENTS}.` },
    ),
    total: Type.Integer({ minimum: 0, description: 'The number of entries, including those that are left out.' }),
  }),
  async run({ type, channel }, { environment }) {
    const { node } = await environment.node()
    const clients = environment.attachments.of({ type, name: channel })
    return {
      node,
      items: clients.slice(0, MAX_CLIENTS).map(({ clientId, kind, pattern = null, group = null, count }) => ({
        client_id: clientId,
        kind,
        pattern,
        group,
        count,
      })),
      total: clients.length,
    }
  },
})
