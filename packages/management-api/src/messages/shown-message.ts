import type { QueueMessage, StoredEvent } from '@signalbox/broker-core'
import { isoTime, longBodyText } from '@signalbox/http-kit'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { bodyData, bodyEncoding, tagsData } from '../actions/message-data.ts'
import { firstBytes } from './first-bytes.ts'

/** A message that a channel holds. */
export type StoredMessage = QueueMessage | StoredEvent

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
    Type.Integer({ minimum: 0, description: 'Queues: receives before it moves to dead_letter_queue; 0 is unlimited.' }),
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

export type ShownMessage = Static<typeof shownMessageSchema>

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
  return { ...common, ...(key === undefined ? {} : { key }), ...(tombstone ? { tombstone } : {}) }
}
