import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import type { Message, StoredEvent, Tags } from '@signalbox/broker-core'

/** Messages as JSON. */

/** A body in JSON: text, or base64 if the bytes are not UTF-8. */
export interface BodyText {
  readonly body: string
  readonly body_encoding?: 'base64'
}

/** Returns a body as text, or as base64 if the bytes are not UTF-8. */
export function bodyText(bytes: Uint8Array): BodyText {
  const body = decodeText(bytes)
  if (body !== undefined) return { body }
  return {
    body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    body_encoding: 'base64',
  }
}

interface MessageShape extends BodyText {
  readonly metadata: string
  readonly tags: Tags
}

interface StoredEventShape extends MessageShape {
  readonly sequence: number
  readonly timestamp: string
}

/** Returns a message as JSON: its body, metadata and tags. */
export function messageShape({ body, metadata, tags }: Message): MessageShape {
  const text = decodeText(body)
  return text === undefined ? { ...bodyText(body), metadata, tags } : { body: text, metadata, tags }
}

/** Returns a stored event as JSON: the message, its sequence and its time. */
export function storedEventShape(event: StoredEvent): StoredEventShape {
  return { ...messageShape(event), sequence: event.sequence, timestamp: isoTime(event.timestamp) }
}

/** Returns a time, given in ms since the epoch, as an ISO 8601 timestamp in UTC. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
