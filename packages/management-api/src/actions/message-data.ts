import type { QueueMessage, Tags } from '@signalbox/broker-core'
import type { LongBytes } from '@signalbox/http-kit'
import { isoTime, longMessageShape, messageSizeInJson } from '@signalbox/http-kit'
import { Type } from 'typebox'

/** The schemas of messages in the answers of actions. */

export const bodyEncoding = Type.Optional(
  Type.Literal('base64', { description: 'Present if the body is not UTF-8 text; body is then base64.' }),
)

export const tagsData = Type.Unsafe<Tags>({ type: 'object', additionalProperties: { type: 'string' } })

/** A body, which is written in pieces if it is long. */
export const bodyData = Type.Unsafe<string | LongBytes>({ type: 'string' })

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
export function answerLimit(onMore: () => void) {
  return { maxBytes: MAX_ANSWER_BYTES, sizeOf: messageSizeInJson, onMore }
}
