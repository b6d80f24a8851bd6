import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import type { Message, StoredEvent, Tags } from '@signalbox/broker-core'

/** Messages as JSON (specification, "Message and channel shapes returned as JSON text by tools"). */

/** A body in JSON: text, or base64 if the bytes are not UTF-8. */
export interface BodyText {
  readonly body: string
  readonly body_encoding?: 'base64'
}

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

export function messageShape({ body, metadata, tags }: Message): MessageShape {
  const text = decodeText(body)
  return text === undefined ? { ...bodyText(body), metadata, tags } : { body: text, metadata, tags }
}

export function storedEventShape(event: StoredEvent): StoredEventShape {
  return { ...messageShape(event), sequence: event.sequence, timestamp: isoTime(event.timestamp) }
}

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
