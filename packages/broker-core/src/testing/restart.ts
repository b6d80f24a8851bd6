import assert from 'node:assert/strict'

import { isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import {
  appendAll,
  assertBytes,
  assertNothingDue,
  assertTags,
  CONSUMER,
  storedEvent,
  numbered,
  queued,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'
import { pause } from './waiting.ts'

/** Cases for the data after an engine was closed and opened again. */
export const restartCases: readonly ContractCase[] = [
  isolatedCase('restart - messages and their order survive', async (context) => {
    const queue = context.channel('queue')
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const tags = Object.fromEntries([
      ['__proto__', 'data'],
      ['', '🙂'],
    ])
    const message = queued(body, { metadata: 'meta', tags, expirationMs: 3_600_000 })
    await context.engine.queues.send(queue, message)
    await sendAll(context.engine, queue, numbered(20))
    const [before] = await context.engine.queues.peek(queue, { maxMessages: 1 })
    await context.restart()
    const [first, ...rest] = await receiveMany(context.engine, queue, 21)
    assert.ok(first && before)
    assertBytes(first.message.body, body)
    assertTags(first.message.tags, tags)
    const { id, clientId, metadata, timestamp, expiresAt, sequence, receiveCount } = first.message
    assert.deepEqual([id, clientId, metadata], [message.id, message.clientId, 'meta'])
    assert.deepEqual([timestamp, expiresAt, sequence], [before.timestamp, before.expiresAt, 1])
    assert.equal(receiveCount, 1)
    assert.deepEqual(texts(rest.map((delivery) => delivery.message)), numbered(20))
  }),

  isolatedCase('restart - sequences continue, also in an empty queue', async (context) => {
    const [queue, store] = [context.channel('queue'), context.channel('log')]
    await sendAll(context.engine, queue, ['x', 'y'])
    await appendAll(context.engine, store, numbered(3))
    for (const { receipt } of await receiveMany(context.engine, queue, 2)) {
      await context.engine.queues.ack([receipt], CONSUMER)
    }
    await context.restart()
    assert.equal((await context.engine.queues.send(queue, queued('z'))).sequence, 3)
    assert.equal((await context.engine.eventsStore.append(store, storedEvent('n'))).sequence, 4)
    await context.restart()
    assert.equal((await context.engine.queues.send(queue, queued('z'))).sequence, 4)
    assert.deepEqual(texts(await context.engine.eventsStore.read(store, { maxMessages: 10 })), [...numbered(3), 'n'])
  }),

  isolatedCase('restart - acked and purged messages do not return', async (context) => {
    const [acked, purged] = [context.channel('acked'), context.channel('purged')]
    await sendAll(context.engine, acked, ['x', 'y'])
    await sendAll(context.engine, purged, ['x', 'y'])
    const { receipt } = await receiveOne(context.engine, acked)
    await context.engine.queues.ack([receipt], CONSUMER)
    await context.engine.queues.purge(purged)
    await context.restart()
    assert.equal(text((await receiveOne(context.engine, acked)).message), 'y')
    await assertNothingDue(context.engine, acked)
    await assertNothingDue(context.engine, purged)
  }),

  isolatedCase('restart - receive counts survive', async (context) => {
    const queue = context.channel('counts')
    const deadLetterQueue = context.channel('dead')
    await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 3, deadLetterQueue }))
    for (let count = 1; count <= 2; count += 1) {
      const { receipt, message } = await receiveOne(context.engine, queue)
      assert.equal(message.receiveCount, count)
      await context.engine.queues.nack([receipt], CONSUMER)
    }
    await context.restart()
    const { receipt, message } = await receiveOne(context.engine, queue)
    assert.deepEqual([message.receiveCount, message.maxReceiveCount], [3, 3])
    await context.engine.queues.nack([receipt], CONSUMER)
    assert.equal(text((await receiveOne(context.engine, deadLetterQueue)).message), 'x')
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - a message that was leased is not lost', async (context) => {
    const queue = context.channel('leased')
    await sendAll(context.engine, queue, ['x', 'y'])
    await receiveOne(context.engine, queue, { leaseMs: 1_000 })
    await context.restart()
    const deliveries = await receiveMany(context.engine, queue, 2)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)).toSorted(), ['x', 'y'])
  }),

  isolatedCase('restart - delays continue', async (context) => {
    const queue = context.channel('delay')
    const due = Date.now() + 1_500
    await context.engine.queues.send(queue, queued('later', { delayMs: 1_500 }))
    await context.engine.queues.send(queue, queued('much later', { delayMs: 3_600_000 }))
    await context.restart()
    const early = await receive(context.engine, queue, { waitMs: 0 })
    assert.ok(early.length === 0 || Date.now() >= due - 60, 'not before it is due')
    if (early.length === 0) assert.equal(text((await receiveOne(context.engine, queue)).message), 'later')
    await assertNothingDue(context.engine, queue)
    assert.equal((await context.engine.channels.info('queues', queue))?.queue?.delayed, 1)
  }),

  isolatedCase('restart - expiration continues', async (context) => {
    const queue = context.channel('expiration')
    await context.engine.queues.send(queue, queued('short-lived', { expirationMs: 150 }))
    await context.engine.queues.send(queue, queued('lasting', { expirationMs: 3_600_000 }))
    await context.restart()
    await pause(200)
    assert.equal(text((await receiveOne(context.engine, queue)).message), 'lasting')
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - dead letters survive', async (context) => {
    const [queue, deadLetterQueue] = [context.channel('source'), context.channel('dead')]
    await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
    const { receipt } = await receiveOne(context.engine, queue)
    await context.engine.queues.nack([receipt], CONSUMER)
    await context.restart()
    const { message } = await receiveOne(context.engine, deadLetterQueue)
    assert.deepEqual([text(message), message.tags['dlq_source'], message.expiresAt], ['x', queue, 0])
    await assertNothingDue(context.engine, queue)
  }),

  isolatedCase('restart - stored events and their times survive', async (context) => {
    const store = context.channel('log')
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const { timestamp } = await context.engine.eventsStore.append(
      store,
      storedEvent(body, { metadata: 'meta', tags: { '': '🙂' } }),
    )
    await appendAll(context.engine, store, numbered(50))
    await context.restart()
    const [first, ...rest] = await context.engine.eventsStore.read(store, { maxMessages: 100 })
    assert.ok(first)
    assertBytes(first.body, body)
    assertTags(first.tags, { '': '🙂' })
    assert.deepEqual([first.metadata, first.timestamp, first.sequence], ['meta', timestamp, 1])
    assert.deepEqual(texts(rest), numbered(50))
    const next = await context.engine.eventsStore.append(store, storedEvent('next'))
    assert.ok(next.timestamp >= (rest.at(-1)?.timestamp ?? 0), 'time does not go backwards')
  }),

  isolatedCase('restart - a deleted channel does not return', async (context) => {
    const name = context.channel('deleted')
    await sendAll(context.engine, name, ['x'])
    await appendAll(context.engine, name, ['x'])
    await context.engine.channels.delete('queues', name)
    await context.engine.channels.delete('events_store', name)
    await context.restart()
    assert.equal(await context.engine.channels.info('queues', name), undefined)
    assert.equal(await context.engine.channels.info('events_store', name), undefined)
    assert.equal((await context.engine.queues.send(name, queued('anew'))).sequence, 1)
    assert.equal(text((await receiveOne(context.engine, name)).message), 'anew')
  }),

  isolatedCase('restart - empty channels survive', async (context) => {
    const name = context.channel('created')
    await context.engine.channels.create('queues', name)
    await context.engine.channels.create('events_store', name)
    await context.restart()
    assert.equal(await context.engine.channels.create('queues', name), false)
    assert.equal(await context.engine.channels.create('events_store', name), false)
  }),
]
