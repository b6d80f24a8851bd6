import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import type { Message } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import { bodyText, isJsonObject, isoTime, parseJson } from '@signalbox/http-kit'

import type { Occurrence } from '../wire/events-profile.ts'
import type { EventType } from './event-types.ts'

/** The most bytes of body, metadata and tags that an event contains; a larger message has a preview. */
const MAX_CONTENT_BYTES = 16_384

/** The largest body of a message that is an event of an operator's type: its data is the whole body. */
const MAX_TYPED_BYTES = 196_608

/** The most bytes of a preview. */
const PREVIEW_BYTES = 1_024

/**
 * Returns a message as an event of a type; `undefined` if it is none: its body does not match the operator's schema, or
 * has more than {@link MAX_TYPED_BYTES}.
 * @param cursor The position after the event; `null` for types that cannot be replayed
 */
export function occurrenceOf(type: EventType, message: Message, cursor: string | null): Occurrence | undefined {
  const data = type.accepts === undefined ? contentOf(message) : typedContent(message, type.accepts)
  if (data === undefined) return undefined
  return { eventId: message.id, name: type.name, timestamp: isoTime(message.timestamp), data, cursor }
}

function contentOf(message: Message): JsonObject {
  const { channel, body, metadata, tags } = message
  const sequence = 'sequence' in message ? { sequence: message.sequence } : {}
  const bytes = body.byteLength + Buffer.byteLength(metadata) + tagBytes(tags)
  if (bytes > MAX_CONTENT_BYTES) {
    const { body: preview, ...encoding } = bodyText(startOf(body))
    return { channel, ...sequence, preview, ...encoding, bytes }
  }
  return { channel, ...sequence, ...bodyText(body), metadata, tags }
}

/** Returns the first bytes of a body, without a part of a character. */
function startOf(body: Uint8Array): Uint8Array {
  let end = PREVIEW_BYTES
  while (end > PREVIEW_BYTES - 4 && ((body[end] ?? 0) & 0xc0) === 0x80) end--
  return body.subarray(0, end)
}

function tagBytes(tags: Message['tags']): number {
  let bytes = 0
  for (const [key, value] of Object.entries(tags)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  return bytes
}

function typedContent({ body }: Message, accepts: (data: JsonObject) => boolean): JsonObject | undefined {
  if (body.byteLength > MAX_TYPED_BYTES) return undefined
  const text = decodeText(body)
  const parsed = text === undefined ? undefined : parseJson(text)
  if (parsed === undefined || !('value' in parsed) || !isJsonObject(parsed.value)) return undefined
  return accepts(parsed.value) ? parsed.value : undefined
}
