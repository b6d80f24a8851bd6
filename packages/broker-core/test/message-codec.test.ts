import {
  decodeEntry,
  decodeEvent,
  decodeQueueMessage,
  decodeReply,
  decodeRequest,
  encodeEntry,
  encodeEvent,
  encodeQueueMessage,
  encodeReply,
  encodeRequest,
} from '@signalbox/broker-core/engine'
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'

/** Messages in base64 as version 0.1 wrote them. Nodes of that version share a cluster and its streams with this one. */
const WRITTEN = {
  queueBare: 'AR0AAAABAAAAMQAAAAAGAAAAb3JkZXJzAAAAAAIAAAB7fQ==',
  queueFull:
    'AQYBAAAkAAAAMGIwZTdhNWMtM2MzZS00ZjZlLTlhM2YtMWQyYzNiNGE1OTY4DwAAAGtpdGNoZW4gIjIiIOKYlQoAAABvcmRlcnMubmV3CgAAAHRhYmxlIDQKe31tAAAAeyJkdWUiOjE3NTAwMDAwMDEwMDAsImV4cGlyZXMiOjE3NTAwMDAwNjAwMDAsInJlY2VpdmVzIjozLCJkZWFkIjoiZGVhZCDimKAiLCJkZWR1cCI6ImhQTllzWGFYS1ZzSFdPQlNfalNDbjcifQoAAABtZXNzYWdlX2lkAQAAAGEJAAAAX19wcm90b19fAQAAAHAAAAAABQAAAGVtcHR5AgAAAMOkAgAAAMO2AAEC/4AK',
  queueDead:
    'AfIAAAAkAAAAMGIwZTdhNWMtM2MzZS00ZjZlLTlhM2YtMWQyYzNiNGE1OTY4DwAAAGtpdGNoZW4gIjIiIOKYlQgAAABkZWFkIOKYoAoAAAB0YWJsZSA0Cnt9AgAAAHt9CgAAAG1lc3NhZ2VfaWQBAAAAYQkAAABfX3Byb3RvX18BAAAAcAAAAAAFAAAAZW1wdHkCAAAAw6QCAAAAw7YKAAAAZGxxX3NvdXJjZQoAAABvcmRlcnMubmV3CgAAAGRscV9yZWFzb24RAAAAbWF4X3JlY2VpdmVfY291bnQRAAAAZGxxX3JlY2VpdmVfY291bnQBAAAAMwABAv+ACg==',
  entryBare: 'ARoAAAABAAAAMQAAAAADAAAAbG9nAAAAAAIAAAB7fQ==',
  entryFull:
    'AcEAAAAkAAAAMGIwZTdhNWMtM2MzZS00ZjZlLTlhM2YtMWQyYzNiNGE1OTY4DwAAAGtpdGNoZW4gIjIiIOKYlQMAAABsb2cKAAAAdGFibGUgNAp7fS8AAAB7ImtleSI6ImtcIjEiLCJkZWR1cCI6ImhQTllzWGFYS1ZzSFdPQlNfalNDbjcifQoAAABtZXNzYWdlX2lkAQAAAGEJAAAAX19wcm90b19fAQAAAHAAAAAABQAAAGVtcHR5AgAAAMOkAgAAAMO2AAEC/4AK',
  tombstone: 'ATAAAAABAAAAMQAAAAADAAAAbG9nAAAAABgAAAB7ImtleSI6IiIsInRvbWJzdG9uZSI6MX0=',
  event:
    'Aa0AAAAkAAAAMGIwZTdhNWMtM2MzZS00ZjZlLTlhM2YtMWQyYzNiNGE1OTY4DwAAAGtpdGNoZW4gIjIiIOKYlQoAAABuZXdzLmxvY2FsCgAAAHRhYmxlIDQKe30UAAAAeyJhdCI6MTc1MDAwMDAwMDAwMH0KAAAAbWVzc2FnZV9pZAEAAABhCQAAAF9fcHJvdG9fXwEAAABwAAAAAAUAAABlbXB0eQIAAADDpAIAAADDtgABAv+ACg==',
  request:
    'AcQAAAAkAAAAMGIwZTdhNWMtM2MzZS00ZjZlLTlhM2YtMWQyYzNiNGE1OTY4DwAAAGtpdGNoZW4gIjIiIOKYlQQAAABtZW51CgAAAHRhYmxlIDQKe30xAAAAeyJhdCI6MTc1MDAwMDAwMDAwMCwidGltZW91dCI6MzAwMDAsImxlZnQiOjI5MDAwfQoAAABtZXNzYWdlX2lkAQAAAGEJAAAAX19wcm90b19fAQAAAHAAAAAABQAAAGVtcHR5AgAAAMOkAgAAAMO2AAEC/4AK',
  reply:
    'AYUAAAAAAAAAAAAAAAAAAAAKAAAAdGFibGUgNAp7fSkAAAB7Im5vZGUiOiJub2RlLTEiLCJleGVjdXRlZCI6MSwiZXJyb3IiOiIifQoAAABtZXNzYWdlX2lkAQAAAGEJAAAAX19wcm90b19fAQAAAHAAAAAABQAAAGVtcHR5AgAAAMOkAgAAAMO2AAEC/4AK',
  rejected: 'AUMAAAAAAAAAAAAAAAAAAAAAAAAALwAAAHsibm9kZSI6Im5vZGUtMSIsImV4ZWN1dGVkIjowLCJlcnJvciI6Im5vIOKYlSJ9',
}

const NOW = 1_750_000_000_000
// cspell:disable-next-line
const ORIGIN = 'hPNYsXaXKVsHWOBS_jSCn7'

const FULL = {
  id: '0b0e7a5c-3c3e-4f6e-9a3f-1d2c3b4a5968',
  clientId: 'kitchen "2" ☕',
  metadata: 'table 4\n{}',
  tags: Object.fromEntries([
    ['message_id', 'a'],
    ['__proto__', 'p'],
    ['', 'empty'],
    ['ä', 'ö'],
  ]),
  body: new Uint8Array([0, 1, 2, 255, 128, 10]),
}
const BARE = { id: '1', clientId: '', metadata: '', tags: {}, body: new Uint8Array(0) }
const PLAIN = { dueAt: 0, expiresAt: 0, maxReceiveCount: 0, deadLetterQueue: '', origin: undefined }

const DEAD_TAGS = { dlq_source: 'orders.new', dlq_reason: 'max_receive_count', dlq_receive_count: '3' }

const queueMessages = {
  queueBare: { channel: 'orders', message: BARE, ...PLAIN },
  queueFull: {
    channel: 'orders.new',
    message: FULL,
    dueAt: NOW + 1000,
    expiresAt: NOW + 60_000,
    maxReceiveCount: 3,
    deadLetterQueue: 'dead ☠',
    origin: ORIGIN,
  },
  queueDead: {
    channel: 'dead ☠',
    message: { ...FULL, tags: Object.fromEntries([...Object.entries(FULL.tags), ...Object.entries(DEAD_TAGS)]) },
    ...PLAIN,
  },
} as const

const entries = {
  entryBare: { message: BARE, key: undefined, tombstone: false, origin: undefined },
  entryFull: { message: FULL, key: 'k"1', tombstone: false, origin: ORIGIN },
  tombstone: { message: BARE, key: '', tombstone: true, origin: undefined },
} as const

const event = { message: FULL, channel: 'news.local', sentAt: NOW }
const request = { message: FULL, channel: 'menu', sentAt: NOW, timeoutMs: 30_000, leftMs: 29_000 }

const replies = {
  reply: {
    node: 'node-1',
    reply: { executed: true, error: '', body: FULL.body, metadata: FULL.metadata, tags: FULL.tags },
  },
  rejected: {
    node: 'node-1',
    reply: { executed: false, error: 'no ☕', body: new Uint8Array(0), metadata: '', tags: {} },
  },
} as const

function bytesOf(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, 'base64'))
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

test.for(['queueBare', 'queueFull', 'queueDead'] as const)(
  'message codec - a message of a queue has the bytes of version 0.1: %s',
  (kind) => {
    const { channel, ...message } = queueMessages[kind]

    expect(base64Of(encodeQueueMessage(channel, message))).toBe(WRITTEN[kind])
    expect(decodeQueueMessage(bytesOf(WRITTEN[kind]))).toEqual(message)
  },
)

test.for(['entryBare', 'entryFull', 'tombstone'] as const)(
  'message codec - an entry of an events store has the bytes of version 0.1: %s',
  (kind) => {
    expect(base64Of(encodeEntry('log', entries[kind]))).toBe(WRITTEN[kind])
    expect(decodeEntry(bytesOf(WRITTEN[kind]))).toEqual(entries[kind])
  },
)

test('message codec - events, requests and replies have the bytes of version 0.1', () => {
  expect(base64Of(encodeEvent(event))).toBe(WRITTEN.event)
  expect(decodeEvent(bytesOf(WRITTEN.event))).toEqual(event)
  expect(base64Of(encodeRequest(request))).toBe(WRITTEN.request)
  expect(decodeRequest(bytesOf(WRITTEN.request))).toEqual(request)
  for (const kind of ['reply', 'rejected'] as const) {
    expect(base64Of(encodeReply(replies[kind]))).toBe(WRITTEN[kind])
    expect(decodeReply(bytesOf(WRITTEN[kind]))).toEqual(replies[kind])
  }
})

/** Decodes a message that is a part of a larger buffer. Returns the buffer of its body, and the larger one. */
function received(bodyBytes: number, bufferBytes: number): [decoded: ArrayBufferLike, buffer: ArrayBufferLike] {
  const body = new Uint8Array(bodyBytes).fill(7)
  const { message } = queueMessages.queueBare
  const written = encodeQueueMessage('orders', { ...queueMessages.queueBare, message: { ...message, body } })
  const buffer = new Uint8Array(bufferBytes)
  buffer.set(written, 10)
  const decoded = decodeQueueMessage(buffer.subarray(10, 10 + written.byteLength))?.message.body
  expect(decoded && Buffer.compare(decoded, body)).toBe(0)
  return [decoded?.buffer ?? new ArrayBuffer(), buffer.buffer]
}

test('message codec - copies a body out of a larger buffer, unless a large body is most of it', () => {
  const [large, itsBuffer] = received(1_000_000, 2_000_000)
  // Not compared by toBe: the difference of two megabytes takes minutes to print.
  expect(large === itsBuffer).toBe(true)
  for (const [bodyBytes, bufferBytes] of [
    [1_000_000, 4_000_000],
    [1_000, 2_000],
  ] as const) {
    expect(received(bodyBytes, bufferBytes)[0].byteLength).toBe(bodyBytes)
  }
})

test('message codec - decodes tags whose names are names of the prototype', () => {
  expect(Object.entries(decodeEvent(bytesOf(WRITTEN.event))?.message.tags ?? {})).toEqual(Object.entries(FULL.tags))
})

test('message codec - ignores fields of newer versions and fields with other types', () => {
  const { channel, ...message } = queueMessages.queueBare
  const bytes = encodeQueueMessage(channel, { ...message, deadLetterQueue: 'x'.repeat(60) })
  const json = Buffer.from(JSON.stringify({ dead: 1, expires: '7', receives: [], next: 1 }))
  const written = `{"dead":"${'x'.repeat(60)}"}`
  const at = Buffer.from(bytes).indexOf(written)
  const changed = Buffer.concat([bytes.subarray(0, at), json, Buffer.alloc(written.length - json.length, ' ')])

  expect(decodeQueueMessage(changed)).toEqual(message)
})

test('message codec - refuses data that no node wrote', () => {
  const whole = bytesOf(WRITTEN.queueFull)
  const otherVersion = Uint8Array.from(whole)
  otherVersion[0] = 2
  const brokenFields = Buffer.from(whole)
  brokenFields.write('[', brokenFields.indexOf('{"due"'))

  expect(decodeQueueMessage(otherVersion)).toBeUndefined()
  expect(decodeQueueMessage(brokenFields)).toBeUndefined()
  expect(decodeQueueMessage(new Uint8Array(0))).toBeUndefined()
  expect(decodeQueueMessage(whole.subarray(0, 100))).toBeUndefined()
})
