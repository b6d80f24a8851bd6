import type { BrokerHandle } from '@signalbox/broker-core'
import { argument, parseTimestamp } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { invalidParameters, messageNotFound } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { editArguments, editedMessage, editProblem, RESENT_FROM } from './edited-message.ts'
import { findMessage, findMessages, MAX_EXAMINED } from './find-messages.ts'
import { shownMessageSchema, storedType, wholeMessage } from './shown-message.ts'
import type { StoredType } from './stored-messages.ts'

const sequence = (description: string) => Type.Integer({ description, minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

const channelParameters = {
  type: storedType('The type of the channel: one that keeps messages.'),
  channel: argument.channel(`The channel. ${argument.CHANNEL_RULES}`),
}

const ORDERS = ['oldest', 'newest'] as const

const messagesRoute = defineManagementRoute({
  name: '/api/messages',
  summary: `The messages of a queue or an events store, with the beginnings of their bodies. A search looks at up to ${MAX_EXAMINED} messages, 64 MiB or 5 s per request, and says where it continues. Leased and delayed messages of a queue are not shown.`,
  input: Type.Object(
    {
      ...channelParameters,
      from_sequence: Type.Optional(sequence('The first message to look at, such as `next_sequence` of the last page.')),
      from_time: Type.Optional(
        argument.timestamp('Events stores, oldest first: only events at or after this time, ISO 8601.'),
      ),
      order: Type.Optional(
        Type.Unsafe<(typeof ORDERS)[number]>({
          type: 'string',
          enum: [...ORDERS],
          default: 'oldest',
          description: 'The message to begin with. Queues are shown oldest first.',
        }),
      ),
      search: Type.Optional(
        Type.String({
          description: 'Only messages with this text in the id, sender, metadata, tags or body, in any case.',
          minLength: 1,
          maxLength: 256,
        }),
      ),
      limit: Type.Optional(
        Type.Integer({ description: 'The most messages to show.', minimum: 1, maximum: 1000, default: 50 }),
      ),
      max_body_size: Type.Optional(
        Type.Integer({
          description: 'The most bytes shown of a body; 0 shows none.',
          minimum: 0,
          maximum: 65_536,
          default: 1_024,
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    type: storedType('The type of the channel.'),
    channel: Type.String(),
    items: Type.Array(shownMessageSchema),
    next_sequence: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description: '`from_sequence` of the next page; null at the end of the channel.',
    }),
    examined: Type.Integer({ minimum: 0, description: 'The number of messages looked at.' }),
  }),
  hasBodies: true,
  async run(query, { services, operator }) {
    const { type, channel, from_sequence, from_time, order = 'oldest', limit = 50, max_body_size = 1_024 } = query
    if (order === 'newest' && type === 'queues') {
      throw invalidParameters([{ parameter: 'order', given: 'newest', allowed: 'oldest for the type queues' }])
    }
    if (from_time !== undefined && (type === 'queues' || order === 'newest' || from_sequence !== undefined)) {
      throw invalidParameters([
        {
          parameter: 'from_time',
          given: from_time,
          allowed: 'given for the type events_store with the order oldest, without from_sequence',
        },
      ])
    }
    const broker = services.broker.as(operator)
    // An engine shows an unknown channel as empty, so a mistyped name would look like success.
    await broker.channels.info(type, channel)
    const found = await findMessages(broker, {
      type,
      channel,
      order,
      limit,
      maxBodySize: max_body_size,
      search: query.search,
      fromSequence: from_sequence,
      fromTimestamp: from_time === undefined ? undefined : parseTimestamp(from_time),
    })
    return { type, channel, ...found }
  },
})

const messageRoute = defineManagementRoute({
  name: '/api/message',
  summary: `One message of a queue or an events store, with its whole body. By its id, among the first ${MAX_EXAMINED} messages.`,
  input: Type.Object(
    {
      ...channelParameters,
      sequence: Type.Optional(sequence('The number of the message in the channel.')),
      id: Type.Optional(
        Type.String({
          description: 'The id of the message. With a sequence, it must match.',
          minLength: 1,
          maxLength: 256,
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({
    type: storedType('The type of the channel.'),
    channel: Type.String(),
    message: shownMessageSchema,
  }),
  hasBodies: true,
  async run({ type, channel, sequence: number, id }, { services, operator }) {
    if (number === undefined && id === undefined) {
      throw invalidParameters([{ parameter: 'sequence', allowed: 'given, unless id is given' }])
    }
    const broker = services.broker.as(operator)
    await broker.channels.info(type, channel)
    const message = await findMessage(broker, { type, channel }, { sequence: number, id })
    if (message === undefined) throw messageNotFound({ type, channel }, { sequence: number, id })
    return { type, channel, message: wholeMessage(message) }
  },
})

async function store(
  broker: BrokerHandle,
  type: StoredType,
  channel: string,
  message: ReturnType<typeof editedMessage>,
) {
  return type === 'queues' ? broker.queues.send(channel, message) : broker.eventsStore.publish(channel, message)
}

const resendMessage = defineAction({
  name: 'resend_message',
  summary: `Stores a copy of a message of a queue or an events store, as it is or edited, under the operator's name. The copy has the id of the original in the tag ${RESENT_FROM}; the original stays.`,
  input: Type.Object(
    {
      type: storedType('The type of the channel.'),
      channel: argument.channel(`The channel that has the message. ${argument.CHANNEL_RULES}`),
      sequence: Type.Integer({
        description: 'The number of the message in the channel.',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      to: Type.Optional(
        argument.channel('The channel, of the same type, that gets the copy. Without it the same channel.'),
      ),
      ...editArguments,
    },
    STRICT,
  ),
  output: Type.Object({
    channel: Type.String({ description: 'The channel that got the copy.' }),
    type: storedType('The type of the channel.'),
    id: Type.String({ description: 'The id of the copy.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The number of the copy in the channel.' }),
    resent_from: Type.String({ description: 'The id of the original.' }),
  }),
  target: ({ type, channel, to = channel }) => ({ type, channel: to }),
  rule: editProblem,
  async run({ type, channel, sequence: number, to = channel, ...edit }, { broker }) {
    await broker.channels.info(type, channel)
    const original = await findMessage(broker, { type, channel }, { sequence: number })
    if (original === undefined) throw messageNotFound({ type, channel }, { sequence: number })
    const { id, sequence } = await store(broker, type, to, editedMessage(original, edit))
    return { channel: to, type, id, sequence, resent_from: original.id }
  },
  detail: ({ id, resent_from: original }) => `message ${id} repeats message ${original}`,
})

export const messageOperations: readonly Operation[] = [messagesRoute, messageRoute, resendMessage]
