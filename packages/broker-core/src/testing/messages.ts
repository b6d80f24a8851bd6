import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

import type { Engine } from '../engine/engine.ts'
import type { EventsStoreAppend } from '../engine/events-store-engine.ts'
import type { QueueSend, ReceiveOptions } from '../engine/queue-engine.ts'
import type { OutgoingMessage, QueueDelivery, Reply, Tags } from '../message.ts'
import { decodeText, encodeText } from '../message.ts'
import { PATIENCE_MS } from './contract-case.ts'

export const PRODUCER = 'contract-producer'
export const CONSUMER = 'contract-consumer'

/** A lease longer than any case. */
export const LONG_LEASE_MS = 60_000

export function outgoing(body: string | Uint8Array, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    id: randomUUID(),
    clientId: PRODUCER,
    body: typeof body === 'string' ? encodeText(body) : body,
    metadata: '',
    tags: {},
    ...more,
  }
}

export function queued(body: string | Uint8Array, more: Partial<QueueSend> = {}): QueueSend {
  return { ...outgoing(body), delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '', ...more }
}

export function storedEvent(body: string | Uint8Array, more: Partial<EventsStoreAppend> = {}): EventsStoreAppend {
  return { ...outgoing(body), ...more }
}

export function reply(body: string | Uint8Array, more: Partial<Reply> = {}): Reply {
  const { metadata, tags, ...rest } = outgoing(body)
  return { executed: true, error: '', body: rest.body, metadata, tags, ...more }
}

export function text(message: { readonly body: Uint8Array }): string {
  const decoded = decodeText(message.body)
  assert.ok(decoded !== undefined, 'the body is text')
  return decoded
}

export function texts(messages: readonly { readonly body: Uint8Array }[]): string[] {
  return messages.map(text)
}

/** Returns `count` bodies, each with its number. */
export function numbered(count: number, prefix = 'm'): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`)
}

/** Asserts that the bytes are equal, for any subclass of Uint8Array. */
export function assertBytes(actual: Uint8Array, expected: Uint8Array): void {
  assert.ok(actual instanceof Uint8Array, 'a body is a Uint8Array')
  assert.equal(actual.byteLength, expected.byteLength, 'length of the body')
  const differs = actual.findIndex((byte, i) => byte !== expected[i])
  assert.equal(differs, -1, `byte ${differs} differs`)
}

/** Asserts that the tags are equal in any order, including `__proto__` and empty keys. */
export function assertTags(actual: Tags, expected: Tags): void {
  assert.deepEqual(sortedEntries(actual), sortedEntries(expected))
}

function sortedEntries(tags: Tags): readonly (readonly [string, string])[] {
  return Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Receives with the defaults of most cases: one message, a lease longer than the case, a long wait. */
export function receive(
  engine: Engine,
  channel: string,
  options: Partial<ReceiveOptions> = {},
): Promise<readonly QueueDelivery[]> {
  return engine.queues.receive(channel, {
    maxMessages: 1,
    waitMs: PATIENCE_MS,
    leaseMs: LONG_LEASE_MS,
    clientId: CONSUMER,
    ...options,
  })
}

/** Receives exactly one message, and waits for it. */
export async function receiveOne(
  engine: Engine,
  channel: string,
  options: Partial<ReceiveOptions> = {},
): Promise<QueueDelivery> {
  const [delivery, ...others] = await receive(engine, channel, options)
  assert.ok(delivery, `a message comes from ${channel}`)
  assert.equal(others.length, 0, 'one message is returned if one is requested')
  return delivery
}

/** Receives `count` messages in as many calls as necessary, and leaves them leased. */
export async function receiveMany(
  engine: Engine,
  channel: string,
  count: number,
  options: Partial<ReceiveOptions> = {},
): Promise<readonly QueueDelivery[]> {
  const deliveries: QueueDelivery[] = []
  while (deliveries.length < count) {
    const more = await receive(engine, channel, { maxMessages: count - deliveries.length, ...options })
    assert.ok(more.length > 0, `${count} messages are expected from ${channel}; ${deliveries.length} came`)
    deliveries.push(...more)
  }
  return deliveries
}

/** Asserts that the queue has no message to deliver now. */
export async function assertNothingDue(engine: Engine, channel: string): Promise<void> {
  const deliveries = await receive(engine, channel, { waitMs: 0, maxMessages: 100, leaseMs: 1 })
  assert.deepEqual(texts(deliveries.map(({ message }) => message)), [], `nothing is due in ${channel}`)
}

export async function sendAll(engine: Engine, channel: string, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await engine.queues.send(channel, queued(body))
}

export async function appendAll(engine: Engine, channel: string, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await engine.eventsStore.append(channel, storedEvent(body))
}
