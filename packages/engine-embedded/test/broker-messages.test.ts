import type { BrokerHandle, MessageInput } from '@signalbox/broker-core'
import { createBroker, parseRoutingTable, Routing } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { ALICE, failure, openBroker, text } from './broker-fixture.ts'

const SENDS: Readonly<Record<string, (handle: BrokerHandle, message: MessageInput) => Promise<unknown>>> = {
  'queues.send': (handle, message) => handle.queues.send('c', message),
  'queues.sendBatch': (handle, message) => handle.queues.sendBatch('c', [text('fine'), message]),
  'events.publish': (handle, message) => handle.events.publish('c', message),
  'eventsStore.publish': (handle, message) => handle.eventsStore.publish('c', message),
  'commands.send': (handle, message) => handle.commands.send('c', message, { timeoutMs: 50 }),
  'queries.send': (handle, message) => handle.queries.send('c', message, { timeoutMs: 50 }),
}

test.each(Object.entries(SENDS))('broker - %s refuses what is no message, naming the part', async (_, send) => {
  const { broker, engine } = await openBroker()
  const wrong: readonly (readonly [object, string, string])[] = [
    [{ body: 7 }, 'body', 'a text or bytes'],
    [{}, 'body', 'bytes'],
    [{ ...text('x'), metadata: 7 }, 'metadata', 'a string'],
    [{ ...text('x'), tags: { a: 'fine', b: 1 } }, 'tags.b', 'a string'],
    [{ ...text('x'), tags: { a: undefined } }, 'tags.a', 'a string'],
    [
      { ...text('x'), tags: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`k${i}`, ''])) },
      'tags',
      'at most 256 tags (257 are given)',
    ],
  ]
  for (const [message, field, allowed] of wrong) {
    const error = await failure(send(broker.as(ALICE), message as MessageInput))
    expect(error.code).toBe('MESSAGE_INVALID')
    expect(error.message).toContain(field)
    expect(error.message).toContain(allowed)
    expect(error.details).toMatchObject({ field })
  }
  expect(await engine.channels.list()).toEqual([])
})

test.each(Object.entries(SENDS))(
  'C4 - broker: %s refuses a message over the limit, counting its every part',
  async (what, send) => {
    const { broker, engine } = await openBroker({ maxMessageBytes: 1_000 })
    const over = [
      { body: new Uint8Array(1_001) },
      { body: new Uint8Array(900), metadata: 'ü'.repeat(51) },
      { body: new Uint8Array(900), tags: { ключ: 'x'.repeat(93) } },
    ]
    for (const message of over) {
      const error = await failure(send(broker.as(ALICE), message))
      expect(error.code).toBe('MESSAGE_TOO_LARGE')
      expect(error.message).toMatch(/100[12] bytes .*limit is 1000/)
      expect(error.details).toMatchObject({ limit: 1_000 })
    }
    expect(await engine.channels.list()).toEqual([])
    if (what.startsWith('commands') || what.startsWith('queries')) return
    const whole: MessageInput = { body: new Uint8Array(900), metadata: 'ü'.repeat(50) }
    await send(broker.as(ALICE), whole)
    await send(broker.as(ALICE), { body: new Uint8Array(1_000) })
  },
)

test('broker - numbers out of range are refused, with the argument and the allowed range', async () => {
  const { broker, engine } = await openBroker()
  const { queues, eventsStore, queries } = broker.as(ALICE)
  const wrong: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['delayMs', () => queues.send('c', { ...text('x'), delayMs: -1 })],
    ['delayMs', () => queues.send('c', { ...text('x'), delayMs: 1.5 })],
    ['expirationMs', () => queues.send('c', { ...text('x'), expirationMs: Number.NaN })],
    ['maxReceiveCount', () => queues.sendBatch('c', [text('x'), { ...text('x'), maxReceiveCount: -1 }])],
    ['deadLetterQueue', () => queues.send('c', { ...text('x'), maxReceiveCount: 1, deadLetterQueue: 'c' })],
    ['maxMessages', () => queues.receive('c', { maxMessages: 0 })],
    ['waitMs', () => queues.receive('c', { waitMs: Number.POSITIVE_INFINITY })],
    ['leaseMs', () => queues.receive('c', { leaseMs: 0 })],
    ['leaseMs', () => queues.extend(['receipt'], 0)],
    ['maxMessages', () => queues.peek('c', { maxMessages: 0 })],
    ['maxMessages', () => eventsStore.read('c', { maxMessages: 0 })],
    ['fromSequence', () => eventsStore.read('c', { maxMessages: 1, fromSequence: 0 })],
    ['fromTimestamp', () => eventsStore.read('c', { maxMessages: 1, fromSequence: 1, fromTimestamp: 1 })],
    ['maxMessages', () => eventsStore.readLatest('c', { maxMessages: -1 })],
    ['sequence', () => eventsStore.subscribe('c', { from: 'sequence', sequence: 0 }, {}, () => {})],
    ['milliseconds', () => eventsStore.subscribe('c', { from: 'delta', milliseconds: -1 }, {}, () => {})],
    ['expectLastOfKey', () => eventsStore.publish('c', { ...text('x'), key: 'k', expectLastOfKey: -1 })],
    ['key', () => eventsStore.publish('c', { ...text('x'), expectLastOfKey: 0 })],
    ['key', () => eventsStore.publish('c', { ...text('x'), tombstone: true })],
    ['timeoutMs', () => queries.send('c', text('x'), { timeoutMs: 0 })],
  ]
  for (const [argument, call] of wrong) {
    const error = await failure(call())
    expect([argument, error.code]).toEqual([argument, 'ARGUMENT_INVALID'])
    expect(error.message).toContain(argument)
    expect(error.details).toMatchObject({ argument })
    expect(error.details['allowed']).toBeTypeOf('string')
  }
  expect(await engine.channels.list()).toEqual([])
})

test('M9 - broker: a queue is not its own dead-letter queue', async () => {
  const { broker } = await openBroker()
  const error = await failure(broker.as(ALICE).queues.send('c', { ...text('x'), deadLetterQueue: 'c' }))
  expect(error.details).toMatchObject({ argument: 'deadLetterQueue', allowed: 'another queue' })
})

test('dead letters - a tag that begins with dlq_ is kept as a user tag, in queues alone', async () => {
  const { broker, engine } = await openBroker()
  const { queues, events } = broker.as(ALICE)
  const tags = { dlq_source: 'somewhere', user_dlq_source: 'mine', dlq_own: 'x', other: 'y' }
  await queues.send('letters', { ...text('a'), tags })
  await queues.sendBatch('letters', [{ ...text('b'), tags: { dlq_reason: 'z' } }])
  const stored = await queues.peek('letters', { maxMessages: 2 })
  expect(stored.map((message) => message.tags)).toEqual([
    { user_user_dlq_source: 'somewhere', user_dlq_source: 'mine', user_dlq_own: 'x', other: 'y' },
    { user_dlq_reason: 'z' },
  ])

  const seen: unknown[] = []
  await events.subscribe('alerts', {}, ({ tags: got }) => seen.push(got))
  await events.publish('alerts', { ...text('c'), tags })
  expect(seen).toEqual([tags])

  const routing = new Routing(parseRoutingTable([{ key: 'alerts', routes: 'queues:letters' }]))
  await createBroker(engine, { routing })
    .broker.as(ALICE)
    .events.publish('alerts', { ...text('d'), tags: { dlq_source: 'somewhere' } })
  expect((await queues.peek('letters', { maxMessages: 3 }))[2]?.tags).toEqual({ user_dlq_source: 'somewhere' })
})
