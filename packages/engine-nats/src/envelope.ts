import type { Tags } from '@signalbox/broker-core/engine'
import { Buffer } from 'node:buffer'

/** A message as it is transferred and stored. An absent value is empty, 0 or false. */
export interface MessageEnvelope {
  readonly id: string
  readonly clientId: string
  readonly channel: string
  readonly metadata: string
  readonly tags: Tags
  /** Numbers and short texts that only some kinds of messages have. */
  readonly fields: Readonly<Record<string, string | number>>
  readonly body: Uint8Array
}

/**
 * The maximum size of an envelope with some dozen tags, without body, metadata and tags, in bytes; 6 bytes
 * more for each further tag.
 */
export const MESSAGE_ENVELOPE_BYTES = 4_096

const VERSION = 1

/**
 * Encodes one byte of version, the length of the head, the head, and the body. The head contains texts with
 * their lengths, without escaping, so a message takes hardly more than its bytes, whichever characters it
 * has.
 */
export function encodeEnvelope({ id, clientId, channel, metadata, tags, fields, body }: MessageEnvelope): Uint8Array {
  const texts = [id, clientId, channel, metadata, JSON.stringify(fields)]
  for (const key of Object.keys(tags)) texts.push(key, tags[key] ?? '')
  let head = 0
  const lengths = texts.map((text) => {
    const length = Buffer.byteLength(text)
    head += 4 + length
    return length
  })
  const bytes = Buffer.allocUnsafe(5 + head + body.byteLength)
  bytes[0] = VERSION
  bytes.writeUInt32LE(head, 1)
  let at = 5
  for (const [i, text] of texts.entries()) {
    at = bytes.writeUInt32LE(lengths[i] ?? 0, at)
    at += bytes.write(text, at)
  }
  bytes.set(body, at)
  return bytes
}

/** Decodes a message. Returns undefined for data that no node of this broker sent. */
export function decodeEnvelope(data: Uint8Array): MessageEnvelope | undefined {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  if (bytes.length < 5 || bytes[0] !== VERSION) return undefined
  const end = 5 + bytes.readUInt32LE(1)
  if (end > bytes.length) return undefined
  const texts: string[] = []
  for (let at = 5; at < end;) {
    if (at + 4 > end) return undefined
    const length = bytes.readUInt32LE(at)
    at += 4
    if (at + length > end) return undefined
    texts.push(bytes.toString('utf8', at, at + length))
    at += length
  }
  const [id, clientId, channel, metadata, json, ...pairs] = texts
  if (id === undefined || clientId === undefined || channel === undefined) return undefined
  if (metadata === undefined || json === undefined) return undefined
  const fields = fieldsOf(json)
  if (!fields) return undefined
  const tags: Record<string, string> = {}
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    // Not by assignment: `__proto__` is a valid tag.
    Object.defineProperty(tags, pairs[i] ?? '', {
      value: pairs[i + 1] ?? '',
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  // A copy, so that the rest of the received buffer is not kept.
  return { id, clientId, channel, metadata, tags, fields, body: new Uint8Array(bytes.subarray(end)) }
}

function fieldsOf(json: string): Record<string, string | number> | undefined {
  if (json === '{}') return {}
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null) return undefined
    const fields: Record<string, string | number> = {}
    for (const [name, field] of Object.entries(value)) {
      if (typeof field === 'string' || typeof field === 'number') fields[name] = field
    }
    return fields
  } catch {
    return undefined
  }
}

export function numberField({ fields }: MessageEnvelope, name: string): number {
  const value = fields[name]
  return typeof value === 'number' ? value : 0
}

export function textField({ fields }: MessageEnvelope, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}
