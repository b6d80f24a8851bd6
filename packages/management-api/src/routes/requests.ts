import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { SeenRequest } from '../requests/open-requests.ts'
import { MAX_ENDED, MAX_OPEN } from '../requests/open-requests.ts'
import { defineManagementRoute, STRICT } from './route.ts'

const REQUEST_TYPES = ['commands', 'queries'] as const

const STATES = ['waiting', 'delivered', 'ended'] as const

const at = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const requestSchema = Type.Object({
  id: Type.String(),
  type: Type.Unsafe<(typeof REQUEST_TYPES)[number]>({ type: 'string', enum: [...REQUEST_TYPES] }),
  channel: Type.String(),
  client: Type.String({ description: 'The ClientID of the requester.' }),
  body_size: Type.Integer({ minimum: 0 }),
  state: Type.Unsafe<(typeof STATES)[number]>({
    type: 'string',
    enum: [...STATES],
    description: '`delivered` after the first delivery to a responder of this node.',
  }),
  sent_at: Type.String({ description: 'ISO 8601.' }),
  delivered_at: at('The first delivery on this node, ISO 8601; null without one.'),
  responder: Type.Union([Type.String(), Type.Null()], { description: 'The ClientID of the responder that got it.' }),
  ended_at: at('ISO 8601; null while it waits.'),
  outcome: Type.Union([Type.String(), Type.Null()], {
    description: '`executed`, `rejected`, or the code of the error; null while it waits.',
  }),
  milliseconds: Type.Integer({ minimum: 0, description: 'The time since it was sent, or until its end.' }),
})

function shownRequest({ id, type, channel, client, bodySize, sentAt, delivered, ended }: SeenRequest) {
  return {
    id,
    type,
    channel,
    client,
    body_size: bodySize,
    state: ended ? ('ended' as const) : delivered ? ('delivered' as const) : ('waiting' as const),
    sent_at: isoTime(sentAt),
    delivered_at: delivered === undefined ? null : isoTime(delivered.at),
    responder: delivered?.responder ?? null,
    ended_at: ended === undefined ? null : isoTime(ended.at),
    outcome: ended?.outcome ?? null,
    milliseconds: Math.max(0, (ended?.at ?? Date.now()) - sentAt),
  }
}

export const requestsRoute = defineManagementRoute({
  path: '/api/requests',
  summary: `The commands and queries that were sent on this node and wait for an answer, oldest first, of up to ${MAX_OPEN}; and the last ${MAX_ENDED} that ended.`,
  query: Type.Object(
    {
      channel: Type.Optional(
        Type.String({ description: 'Only requests on this channel.', minLength: 1, maxLength: 512 }),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most waiting requests to show.', minimum: 1, maximum: 1000, default: 100 }),
      ),
    },
    STRICT,
  ),
  data: Type.Object({
    node: Type.String({ description: 'The node that answers.' }),
    waiting_count: Type.Integer({ minimum: 0, description: 'The number of waiting requests.' }),
    unlisted: Type.Integer({ minimum: 0, description: 'Requests since the start that were too many to be listed.' }),
    waiting: Type.Array(requestSchema),
    ended: Type.Array(requestSchema, { description: 'Newest first.' }),
  }),
  async run({ channel, limit = 100 }, { environment }) {
    const { requests } = environment
    const isMeant = (request: SeenRequest): boolean => channel === undefined || request.channel === channel
    const waiting = requests.waiting().filter(isMeant)
    const { node } = await environment.node()
    return {
      node,
      waiting_count: waiting.length,
      unlisted: requests.unlisted,
      waiting: waiting.slice(0, limit).map(shownRequest),
      ended: requests.ended().filter(isMeant).map(shownRequest),
    }
  },
})
