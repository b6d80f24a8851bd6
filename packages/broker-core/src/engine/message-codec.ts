import { Buffer } from 'node:buffer'

import type { OutgoingMessage, Reply, Tags } from '../message.ts'

/**
 * The binary form of messages, for engines that pass them between processes: one byte of version, the length of the
 * head, the head, and the body. The head contains texts with their lengths: id, ClientID, channel, metadata, a JSON
 * object of the fields that only some kinds of messages have, and the keys and values of the tags. No text needs
 * escaping, so the overhead is small for any characters.
 *
 * Nodes of other versions read what is written here, and stored messages outlive a version. A new field therefore goes
 * into {@link Fields}: older nodes ignore it, and its absence must mean that the sender did not set it. Nothing else can
 * change without a new version byte.
 */
const VERSION = 1

/**
 * The maximum size of an encoded message with some dozen tags, without body, metadata and tags, in bytes; 6 bytes more
 * for each further tag.
 */
export const MESSAGE_ENVELOPE_BYTES = 4_096

/** The JSON object in the head. An absent field is 0, false, empty or undefined. */
interface Fields {
  /** Queues: when the message is due, and when it expires. */
  due?: number
  expires?: number
  /** Queues: the maximum number of receives, and the dead-letter queue. */
  receives?: number
  dead?: string
  /** Events stores: the key; 1 for a tombstone. */
  key?: string
  tombstone?: number
  /** Queues and events stores: a hash of the deduplication id. */
  dedup?: string
  /** Events and requests: the time of sending. */
  at?: number
  /** Requests: the time-out, and the rest of it when the request was sent this time. */
  timeout?: number
  left?: number
  /** Replies. */
  node?: string
  executed?: number
  error?: string
}

/** A message of a queue as an engine stores it. Times are in ms since the epoch. */
export interface EncodedQueueMessage {
  readonly message: OutgoingMessage
  /** 0 means immediately. */
  readonly dueAt: number
  /** 0 means never. */
  readonly expiresAt: number
  /** 0 means unlimited. */
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
  /** A hash of the deduplication id. */
  readonly origin: string | undefined
}

export function encodeQueueMessage(channel: string, queued: EncodedQueueMessage): Uint8Array {
  const { message, dueAt, expiresAt, maxReceiveCount, deadLetterQueue, origin } = queued
  const fields: Fields = {}
  if (dueAt > 0) fields.due = dueAt
  if (expiresAt > 0) fields.expires = expiresAt
  if (maxReceiveCount > 0) fields.receives = maxReceiveCount
  if (deadLetterQueue !== '') fields.dead = deadLetterQueue
  if (origin !== undefined) fields.dedup = origin
  return encode(channel, message, fields)
}

/** Decodes a message of a queue; undefined for data that no node of this broker stored, as in the other functions. */
export function decodeQueueMessage(data: Uint8Array): EncodedQueueMessage | undefined {
  const decoded = decode(data)
  if (!decoded) return undefined
  const { message, fields } = decoded
  return {
    message,
    dueAt: number(fields.due),
    expiresAt: number(fields.expires),
    maxReceiveCount: number(fields.receives),
    deadLetterQueue: text(fields.dead) ?? '',
    origin: text(fields.dedup),
  }
}

/** An entry of an events store as an engine stores it. */
export interface EncodedEntry {
  readonly message: OutgoingMessage
  readonly key: string | undefined
  readonly tombstone: boolean
  /** A hash of the deduplication id. */
  readonly origin: string | undefined
}

export function encodeEntry(channel: string, { message, key, tombstone, origin }: EncodedEntry): Uint8Array {
  const fields: Fields = {}
  if (key !== undefined) fields.key = key
  if (tombstone) fields.tombstone = 1
  if (origin !== undefined) fields.dedup = origin
  return encode(channel, message, fields)
}

export function decodeEntry(data: Uint8Array): EncodedEntry | undefined {
  const decoded = decode(data)
  if (!decoded) return undefined
  const { message, fields } = decoded
  return { message, key: text(fields.key), tombstone: fields.tombstone === 1, origin: text(fields.dedup) }
}

/** An event on its way to subscribers. */
export interface EncodedEvent {
  readonly message: OutgoingMessage
  readonly channel: string
  /** The time of publishing, in ms since the epoch. */
  readonly sentAt: number
}

export function encodeEvent({ message, channel, sentAt }: EncodedEvent): Uint8Array {
  return encode(channel, message, { at: sentAt })
}

export function decodeEvent(data: Uint8Array): EncodedEvent | undefined {
  const decoded = decode(data)
  return decoded && { message: decoded.message, channel: decoded.channel, sentAt: number(decoded.fields.at) }
}

/** A command or query on its way to a subscriber. */
export interface EncodedRequest {
  readonly message: OutgoingMessage
  readonly channel: string
  /** The time when the request was first sent, by the requester's clock, in ms since the epoch. */
  readonly sentAt: number
  /** The time-out since the request was first sent, in ms. */
  readonly timeoutMs: number
  /** The rest of the time-out when the request was sent this time, in ms. */
  readonly leftMs: number
}

export function encodeRequest({ message, channel, sentAt, timeoutMs, leftMs }: EncodedRequest): Uint8Array {
  return encode(channel, message, { at: sentAt, timeout: timeoutMs, left: leftMs })
}

export function decodeRequest(data: Uint8Array): EncodedRequest | undefined {
  const decoded = decode(data)
  if (!decoded) return undefined
  const { message, channel, fields } = decoded
  return {
    message,
    channel,
    sentAt: number(fields.at),
    timeoutMs: number(fields.timeout),
    leftMs: number(fields.left),
  }
}

/** The answer of a subscriber on a node. */
export interface EncodedReply {
  readonly node: string
  readonly reply: Reply
}

export function encodeReply({ node, reply }: EncodedReply): Uint8Array {
  const { executed, error, body, metadata, tags } = reply
  const message = { id: '', clientId: '', body, metadata, tags }
  return encode('', message, { node, executed: executed ? 1 : 0, error })
}

export function decodeReply(data: Uint8Array): EncodedReply | undefined {
  const decoded = decode(data)
  if (!decoded) return undefined
  const { body, metadata, tags } = decoded.message
  const { node, executed, error } = decoded.fields
  return { node: text(node) ?? '', reply: { executed: executed === 1, error: text(error) ?? '', body, metadata, tags } }
}

// ── The parts that all kinds share ──

function encode(channel: string, message: OutgoingMessage, fields: Fields): Uint8Array {
  const { id, clientId, metadata, tags, body } = message
  const texts = [id, clientId, channel, metadata, JSON.stringify(fields)]
  for (const key of Object.keys(tags)) texts.push(key, tags[key] ?? '')
  let head = 0
  const lengths = texts.map((each) => {
    const length = Buffer.byteLength(each)
    head += 4 + length
    return length
  })
  const bytes = Buffer.allocUnsafe(5 + head + body.byteLength)
  bytes[0] = VERSION
  bytes.writeUInt32LE(head, 1)
  let at = 5
  for (const [i, each] of texts.entries()) {
    at = bytes.writeUInt32LE(lengths[i] ?? 0, at)
    at += bytes.write(each, at)
  }
  bytes.set(body, at)
  return bytes
}

interface Decoded {
  readonly message: OutgoingMessage
  readonly channel: string
  /** The fields as they arrived: another version may have written other types. */
  readonly fields: Readonly<Partial<Record<keyof Fields, unknown>>>
}

function decode(data: Uint8Array): Decoded | undefined {
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
  const body = separate(bytes.subarray(end))
  return { message: { id, clientId, body, metadata, tags: tagsOf(pairs) }, channel, fields }
}

/** Bodies of this size are not copied: it takes long. */
const LARGE_BODY_BYTES = 262_144

/** A buffer may have this many times the bytes of the body that keeps it; clients of storages grow theirs by doubling. */
const MOST_SLACK = 3

/** Returns a copy of the body, so that it does not keep the rest of the received buffer, unless that is no large part. */
function separate(body: Uint8Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = body
  const isLargePart = byteLength >= LARGE_BODY_BYTES && buffer.byteLength <= MOST_SLACK * byteLength
  return isLargePart ? new Uint8Array(buffer, byteOffset, byteLength) : new Uint8Array(body)
}

function fieldsOf(json: string): Decoded['fields'] | undefined {
  if (json === '{}') return {}
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function tagsOf(pairs: readonly string[]): Tags {
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
  return tags
}

function number(field: unknown): number {
  return typeof field === 'number' ? field : 0
}

function text(field: unknown): string | undefined {
  return typeof field === 'string' ? field : undefined
}
