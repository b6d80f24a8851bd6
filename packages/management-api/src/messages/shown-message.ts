import type { QueueMessage, ResultLimit, Tags } from '@signalbox/broker-core'
import { answerBound, isoTime, longBodyText, longMessageShape } from '@signalbox/http-kit/internal'
import type { LongBytes, ReadingHold } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import type { AnswerOf } from '../envelope.ts'
import { firstBytes, STORED_TYPES } from './stored-messages.ts'
import type { StoredMessage, StoredType } from './stored-messages.ts'

export const bodyEncoding = Type.Optional(
  Type.Literal('base64', { description: 'Present if the body is not UTF-8 text; body is then base64.' }),
)

export const tagsData = Type.Unsafe<Tags>({ type: 'object', additionalProperties: { type: 'string' } })

/** A body, which is written in pieces if it is long. */
const bodyData = Type.Unsafe<string | LongBytes>({ type: 'string' })

/** In lists, longer metadata and further tags are left out. */
const MAX_METADATA = 1_024
const MAX_TAGS = 64

const time = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

/** A message of a queue or of an events store in answers. */
export const shownMessageSchema = Type.Object({
  sequence: Type.Integer({ minimum: 1, description: 'The number of the message in the channel.' }),
  id: Type.String(),
  client_id: Type.String({ description: 'The ClientID of the sender.' }),
  timestamp: Type.String({ description: 'The time of acceptance, ISO 8601.' }),
  receive_count: Type.Optional(Type.Integer({ minimum: 0, description: 'Queues: the number of receives.' })),
  expires_at: Type.Optional(time('Queues: the time of expiry, ISO 8601; null for never.')),
  max_receive_count: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Queues: receives before it moves to dead_letter_queue; 0 means unlimited.',
    }),
  ),
  dead_letter_queue: Type.Optional(Type.String({ description: 'Queues: empty for none.' })),
  key: Type.Optional(Type.String({ description: 'Events stores: the compaction key.' })),
  tombstone: Type.Optional(Type.Literal(true, { description: 'Events stores: the entry deletes its key.' })),
  body: bodyData,
  body_encoding: bodyEncoding,
  body_size: Type.Integer({ minimum: 0, description: 'The size of the whole body, in bytes.' }),
  metadata: Type.String(),
  tags: tagsData,
  tag_count: Type.Integer({ minimum: 0, description: 'The number of all tags.' }),
  truncated: Type.Boolean({
    description:
      'True if a part of the body, the metadata or the tags is left out; /api/message has the whole message.',
  }),
})

export type ShownMessage = AnswerOf<Static<typeof shownMessageSchema>>

/** Returns a message with at most `maxBodySize` bytes of its body, and with its first tags. */
export function shownMessage(message: StoredMessage, maxBodySize: number): ShownMessage {
  const { body, metadata, tags } = message
  const entries = Object.entries(tags)
  const shownTags = entries.slice(0, MAX_TAGS).map(([key, value]) => [beginning(key), beginning(value)] as const)
  return {
    ...properties(message),
    ...longBodyText(firstBytes(body, maxBodySize)),
    body_size: body.byteLength,
    metadata: beginning(metadata),
    tags: Object.fromEntries(shownTags),
    tag_count: entries.length,
    truncated:
      body.byteLength > maxBodySize ||
      isCut(metadata) ||
      entries.length > MAX_TAGS ||
      entries.some(([key, value]) => isCut(key) || isCut(value)),
  }
}

/** Returns a message with its whole body and every tag. */
export function wholeMessage(message: StoredMessage): ShownMessage {
  const { body, metadata, tags } = message
  return {
    ...properties(message),
    ...longBodyText(body),
    body_size: body.byteLength,
    metadata,
    tags: { ...tags },
    tag_count: Object.keys(tags).length,
    truncated: false,
  }
}

function isCut(text: string): boolean {
  return text.length > MAX_METADATA
}

function beginning(text: string): string {
  return text.length <= MAX_METADATA ? text : text.slice(0, MAX_METADATA).toWellFormed()
}

function properties(message: StoredMessage) {
  const { sequence, id, clientId, timestamp } = message
  const common = { sequence, id, client_id: clientId, timestamp: isoTime(timestamp) }
  if ('receiveCount' in message) {
    return {
      ...common,
      receive_count: message.receiveCount,
      expires_at: message.expiresAt === 0 ? null : isoTime(message.expiresAt),
      max_receive_count: message.maxReceiveCount,
      dead_letter_queue: message.deadLetterQueue,
    }
  }
  const { key, tombstone } = message
  return { ...common, key, tombstone: tombstone ? (true as const) : undefined }
}

export const queueMessageData = Type.Object({
  id: Type.String(),
  sequence: Type.Integer({ minimum: 1, description: 'The number of the message in the queue.' }),
  client_id: Type.String({ description: 'The ClientID of the sender.' }),
  timestamp: Type.String({ description: 'The time of acceptance, ISO 8601.' }),
  receive_count: Type.Integer({ minimum: 0, description: 'The number of receives.' }),
  expires_at: Type.Union([Type.String(), Type.Null()], {
    description: 'The time of expiry, ISO 8601; null for never.',
  }),
  body: bodyData,
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsData,
})

export function queueMessage(message: QueueMessage) {
  const { id, sequence, clientId, timestamp, receiveCount, expiresAt } = message
  return {
    id,
    sequence,
    client_id: clientId,
    timestamp: isoTime(timestamp),
    receive_count: receiveCount,
    expires_at: expiresAt === 0 ? null : isoTime(expiresAt),
    ...longMessageShape(message),
  }
}

/** The most bytes of messages in one answer, in JSON. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/** Returns the limit of a read for one answer. */
export function answerLimit(hold: ReadingHold | undefined, onMore: () => void): Promise<ResultLimit> {
  return answerBound(MAX_ANSWER_BYTES, hold, onMore)
}

/** Returns `1 message` or `2 messages`, for details of audit entries. */
export function messageCount(number: number): string {
  return number === 1 ? '1 message' : `${number} messages`
}

/** Returns the schema of the type of a channel that keeps messages. */
export const storedType = (description: string) =>
  Type.Unsafe<StoredType>({ type: 'string', enum: [...STORED_TYPES], description })
