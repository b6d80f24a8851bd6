import assert from 'node:assert/strict'

import { createBroker } from '../broker.ts'
import { encodeText } from '../message.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, rejectsWith } from './contract-case.ts'
import { assertNothingDue, CONSUMER, queued, receiveMany, receiveOne, storedEvent, text, texts } from './messages.ts'

/** Cases for idempotent sends. */
export const deduplicationCases: readonly ContractCase[] = [
  contractCase('C5 - queues: a second send with the same id stores nothing', async ({ engine, channel }) => {
    const queue = channel('again')
    const first = await engine.queues.send(queue, queued('x', { id: 'first', deduplicationId: 'order 7' }))
    const second = await engine.queues.send(queue, queued('y', { id: 'second', deduplicationId: 'order 7' }))
    assert.deepEqual({ ...first }, { id: 'first', sequence: 1, duplicate: false })
    assert.deepEqual({ ...second }, { id: 'first', sequence: 1, duplicate: true })
    assert.equal(text((await receiveOne(engine, queue)).message), 'x')
    await assertNothingDue(engine, queue)
    const { sequence } = await engine.queues.send(queue, queued('z'))
    assert.equal(sequence, 2, 'a duplicate uses no sequence')
  }),

  contractCase(
    'C5 - queues: a repeated send of an acked or purged message stores nothing',
    async ({ engine, channel }) => {
      const queue = channel('acked')
      await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))
      const { receipt } = await receiveOne(engine, queue)
      await engine.queues.ack([receipt], CONSUMER)
      await engine.queues.send(queue, queued('y', { deduplicationId: 'b' }))
      await engine.queues.purge(queue)
      assert.equal((await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))).duplicate, true)
      assert.equal((await engine.queues.send(queue, queued('y', { deduplicationId: 'b' }))).duplicate, true)
      await assertNothingDue(engine, queue)
    },
  ),

  contractCase('C5 - queues: other ids and other queues are not duplicates', async ({ engine, channel }) => {
    const [one, two] = [channel('one'), channel('two')]
    for (const [queue, deduplicationId] of [
      [one, 'a'],
      [one, 'A'],
      [one, 'a '],
      [one, '__proto__'],
      [one, 'größe 🙂'],
      [two, 'a'],
    ] as const) {
      assert.equal((await engine.queues.send(queue, queued('x', { deduplicationId }))).duplicate, false)
      assert.equal((await engine.queues.send(queue, queued('x', { deduplicationId }))).duplicate, true)
    }
    assert.equal((await receiveMany(engine, one, 5)).length, 5)
    assert.equal((await receiveMany(engine, two, 1)).length, 1)
    await assertNothingDue(engine, one)
    await assertNothingDue(engine, two)
  }),

  contractCase(
    'C5 - queues: one of several concurrent sends with the same id is stored',
    async ({ engine, channel }) => {
      const queue = channel('race')
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          engine.queues.send(queue, queued(`${i}`, { id: `${i}`, deduplicationId: 'same' })),
        ),
      )
      const stored = results.filter(({ duplicate }) => !duplicate)
      assert.equal(stored.length, 1)
      for (const { id } of results) assert.equal(id, stored[0]?.id)
      assert.equal((await receiveOne(engine, queue)).message.id, stored[0]?.id)
      await assertNothingDue(engine, queue)
    },
  ),

  contractCase('C5 - queues: each duplicate in a batch is reported', async ({ engine, channel }) => {
    const queue = channel('batch')
    const batch = [
      queued('x', { id: 'x', deduplicationId: 'a' }),
      queued('y', { id: 'y', deduplicationId: 'a' }),
      queued('z', { id: 'z', deduplicationId: 'b' }),
    ]
    const first = await engine.queues.sendBatch(queue, batch)
    assert.deepEqual(
      first.map(({ id, sequence, duplicate }) => [id, sequence, duplicate]),
      [
        ['x', 1, false],
        ['x', 1, true],
        ['z', 2, false],
      ],
    )
    const second = await engine.queues.sendBatch(queue, [...batch, queued('new', { id: 'new' })])
    assert.deepEqual(
      second.map(({ id, duplicate }) => [id, duplicate]),
      [
        ['x', true],
        ['x', true],
        ['z', true],
        ['new', false],
      ],
    )
    const deliveries = await receiveMany(engine, queue, 3)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)), ['x', 'z', 'new'])
    await assertNothingDue(engine, queue)
  }),

  isolatedCase('C5 - queues: ids survive a restart', async (context) => {
    const queue = context.channel('restart')
    await context.engine.queues.send(queue, queued('x', { id: 'first', deduplicationId: 'a' }))
    await context.restart()
    const again = await context.engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))
    assert.deepEqual({ ...again }, { id: 'first', sequence: 1, duplicate: true })
    assert.equal((await context.engine.queues.send(queue, queued('y', { deduplicationId: 'b' }))).duplicate, false)
  }),

  isolatedCase(
    'C5 - queues: a refused send can be retried, and a retry of a stored one succeeds',
    async ({ engine, channel }) => {
      const queue = channel('full')
      await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))
      await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('y', { deduplicationId: 'b' })))
      assert.equal((await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))).duplicate, true)
      const { receipt } = await receiveOne(engine, queue)
      await engine.queues.ack([receipt], CONSUMER)
      assert.equal((await engine.queues.send(queue, queued('y', { deduplicationId: 'b' }))).duplicate, false)
    },
    { queueMaxMessages: 1 },
  ),

  contractCase('C5 - queues: deleting a queue removes its ids', async ({ engine, channel }) => {
    const queue = channel('forgets')
    await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))
    await engine.channels.delete('queues', queue)
    const { duplicate, sequence } = await engine.queues.send(queue, queued('x', { deduplicationId: 'a' }))
    assert.deepEqual([duplicate, sequence], [false, 1])
  }),

  contractCase("C5 - broker: a message_id does not suppress another sender's message", async ({ engine, channel }) => {
    const { broker } = createBroker(engine)
    const [queue, store] = [channel('queue'), channel('log')]
    const input = { body: encodeText('x'), tags: { message_id: 'order 7' } }
    for (const duplicate of [false, true]) {
      for (const clientId of ['alice', 'alice 7', 'bob']) {
        const { queues, eventsStore } = broker.as({ clientId })
        assert.equal((await queues.send(queue, input)).duplicate, duplicate)
        assert.equal((await queues.sendBatch(queue, [input]))[0]?.duplicate, true)
        assert.equal((await eventsStore.publish(store, input)).duplicate, duplicate)
      }
    }
    const senders = (await receiveMany(engine, queue, 3)).map(({ message }) => message.clientId)
    assert.deepEqual(senders, ['alice', 'alice 7', 'bob'])
    assert.equal((await engine.eventsStore.read(store, { maxMessages: 10 })).length, 3)
  }),

  contractCase('C5 - events store: a second append with the same id writes nothing', async ({ engine, channel }) => {
    const store = channel('again')
    const first = await engine.eventsStore.append(store, storedEvent('x', { id: 'first', deduplicationId: 'a' }))
    const second = await engine.eventsStore.append(store, storedEvent('y', { id: 'second', deduplicationId: 'a' }))
    assert.equal(first.duplicate, false)
    assert.deepEqual([second.id, second.sequence, second.duplicate], ['first', 1, true])
    assert.equal((await engine.eventsStore.append(store, storedEvent('z'))).sequence, 2)
    assert.deepEqual(texts(await engine.eventsStore.read(store, { maxMessages: 10 })), ['x', 'z'])
  }),

  contractCase(
    'C5 - events store: one of several concurrent appends with the same id is written',
    async ({ engine, channel }) => {
      const store = channel('race')
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          engine.eventsStore.append(store, storedEvent(`${i}`, { deduplicationId: 'same' })),
        ),
      )
      assert.equal(results.filter(({ duplicate }) => !duplicate).length, 1)
      assert.deepEqual(new Set(results.map(({ sequence }) => sequence)), new Set([1]))
      assert.equal((await engine.eventsStore.read(store, { maxMessages: 100 })).length, 1)
    },
  ),

  isolatedCase('C5 - events store: ids survive a restart, separately for each channel and type', async (context) => {
    const [store, other] = [context.channel('restart'), context.channel('other')]
    await context.engine.eventsStore.append(store, storedEvent('x', { deduplicationId: 'a' }))
    await context.restart()
    assert.equal(
      (await context.engine.eventsStore.append(store, storedEvent('x', { deduplicationId: 'a' }))).duplicate,
      true,
    )
    assert.equal(
      (await context.engine.eventsStore.append(other, storedEvent('x', { deduplicationId: 'a' }))).duplicate,
      false,
    )
    assert.equal((await context.engine.queues.send(store, queued('x', { deduplicationId: 'a' }))).duplicate, false)
  }),

  isolatedCase('C5 - deduplication: the window of a channel applies, also to earlier sends', async (context) => {
    const { engine } = context
    assert.equal(typeof engine.capabilities.deduplicationPerMessage, 'boolean')
    const [queue, store, other] = [context.channel('queue'), context.channel('store'), context.channel('other')]
    const message = { deduplicationId: 'a' }
    for (const name of [queue, other]) await engine.queues.send(name, queued('first', message))
    await engine.eventsStore.append(store, storedEvent('first', message))
    engine.settings.replace([
      { type: 'queues', match: queue, source: 'api', deduplication: { window_seconds: 1 } },
      { type: 'events_store', match: store, source: 'api', deduplication: { window_seconds: 1 } },
    ])
    await eventually(async () => {
      assert.equal((await engine.queues.send(queue, queued('second', message))).duplicate, false)
    })
    await eventually(async () => {
      assert.equal((await engine.eventsStore.append(store, storedEvent('second', message))).duplicate, false)
    })
    assert.equal((await engine.queues.send(other, queued('second', message))).duplicate, true)
  }),
]
