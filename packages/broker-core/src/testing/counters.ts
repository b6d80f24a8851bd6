import assert from 'node:assert/strict'

import type { QueueSend } from '../engine/queue-engine.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, Inbox, isolatedCase, PATIENCE_MS, pause, rejectsWith } from './contract-case.ts'
import {
  appendAll,
  CONSUMER,
  LONG_LEASE_MS,
  numbered,
  outgoing,
  queued,
  receive,
  receiveMany,
  receiveOne,
  reply,
  sendAll,
  storedEvent,
  text,
  texts,
} from './messages.ts'

function delayed(): QueueSend {
  return queued('x', { delayMs: 3_600_000 })
}

/** Cases for the counters of each channel. */
export const counterCases: readonly ContractCase[] = [
  contractCase('C3 - counters: a queue counts what it accepts and every delivery', async ({ engine, channel }) => {
    const queue = channel('queue')
    await engine.queues.send(queue, queued('x'.repeat(100), { deduplicationId: 'a' }))
    await engine.queues.send(queue, queued('x'.repeat(100), { deduplicationId: 'a' }))
    await engine.queues.sendBatch(queue, [queued('y'.repeat(100)), queued('z'.repeat(100))])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.nack([receipt], CONSUMER)
    await receiveOne(engine, queue)
    await engine.queues.peek(queue, { maxMessages: 10 })
    await eventually(async () => {
      const state = await engine.channels.info('queues', queue)
      assert.deepEqual([state?.incoming, state?.outgoing], [3, 2])
      assert.ok((state?.incomingBytes ?? 0) >= 300 && (state?.outgoingBytes ?? 0) >= 200)
    })
  }),

  contractCase('counters - a queue reports waiting, delayed and leased messages', async ({ engine, channel }) => {
    const queue = channel('gauges')
    await sendAll(engine, queue, numbered(4))
    await engine.queues.send(queue, queued('delayed', { delayMs: 60_000 }))
    const { receipt } = await receiveOne(engine, queue)
    await receiveOne(engine, queue)
    const gauges = async () => {
      const state = (await engine.channels.info('queues', queue))?.queue
      return [state?.waiting, state?.delayed, state?.inFlight]
    }
    await eventually(async () => assert.deepEqual(await gauges(), [2, 1, 2]))
    await engine.queues.ack([receipt], CONSUMER)
    await eventually(async () => assert.deepEqual(await gauges(), [2, 1, 1]))
    assert.ok(((await engine.channels.info('queues', queue))?.queue?.bytes ?? 0) >= 4 * 2)
    await engine.queues.purge(queue)
    await eventually(async () => assert.deepEqual(await gauges(), [0, 0, 1]))
  }),

  contractCase('C3 - counters: an events store counts accepted entries and deliveries', async ({ engine, channel }) => {
    const store = channel('log')
    await appendAll(engine, store, numbered(5))
    const inbox = new Inbox<unknown>()
    await engine.eventsStore.subscribe(store, { from: 'first' }, {}, inbox.push)
    await inbox.take(5)
    await eventually(async () => {
      const state = await engine.channels.info('events_store', store)
      assert.equal(state?.incoming, 5)
      assert.ok((state?.outgoing ?? 0) >= 5)
      assert.equal(state?.subscribers, 1)
      assert.deepEqual(
        [state?.eventsStore?.firstSequence, state?.eventsStore?.lastSequence, state?.eventsStore?.entries],
        [1, 5, 5],
      )
      assert.ok((state?.eventsStore?.bytes ?? 0) >= 10)
    })
  }),

  contractCase('C3 - counters: events count each delivery, and their subscribers', async ({ engine, channel }) => {
    const name = channel('topic')
    const inbox = new Inbox<unknown>()
    const subscriptions = [
      await engine.events.subscribe(name, {}, inbox.push),
      await engine.events.subscribe(name, {}, inbox.push),
    ]
    await engine.events.publish(name, outgoing('x'.repeat(100)))
    await engine.events.publish(name, outgoing('x'.repeat(100)))
    await inbox.take(4)
    await eventually(async () => {
      const state = await engine.channels.info('events', name)
      assert.deepEqual([state?.incoming, state?.outgoing, state?.subscribers], [2, 4, 2])
      assert.ok((state?.incomingBytes ?? 0) >= 200 && (state?.outgoingBytes ?? 0) >= 400)
    })
    for (const subscription of subscriptions) await subscription.close()
    await eventually(async () => {
      assert.equal((await engine.channels.info('events', name))?.subscribers, 0)
    })
  }),

  contractCase('C3 - counters: requests count in and out, and their subscribers', async ({ engine, channel }) => {
    for (const type of ['commands', 'queries'] as const) {
      const name = channel(type)
      const subscription = await engine.requests.serve(type, name, {}, async () => reply('y'))
      for (let i = 0; i < 3; i += 1) {
        await engine.requests.request(type, name, outgoing('x'), { timeoutMs: PATIENCE_MS })
      }
      await eventually(async () => {
        const state = await engine.channels.info(type, name)
        assert.deepEqual([state?.incoming, state?.outgoing, state?.subscribers], [3, 3, 1])
      })
      await subscription.close()
      await eventually(async () => assert.equal((await engine.channels.info(type, name))?.subscribers, 0))
    }
  }),

  contractCase('C3 - counters: the last activity is the last message in or out', async ({ engine, channel }) => {
    const queue = channel('activity')
    await engine.channels.create('queues', queue)
    const before = Date.now()
    await engine.queues.send(queue, queued('x'))
    const lastActivity = async () => (await engine.channels.info('queues', queue))?.lastActivity ?? 0
    await eventually(async () => assert.ok((await lastActivity()) >= before - 2_000))
    const sent = await lastActivity()
    await receiveOne(engine, queue)
    await eventually(async () => assert.ok((await lastActivity()) >= sent))
    assert.ok((await lastActivity()) <= Date.now() + 2_000)
  }),

  contractCase('C3 - counters: a subscriber counts as activity until it leaves', async ({ engine, channel }) => {
    const name = channel('subscriber')
    await engine.channels.create('events', name)
    const subscription = await engine.events.subscribe(name, {}, () => {})
    await pause(100)
    const leaving = Date.now()
    await subscription.close()
    await eventually(async () => {
      const state = await engine.channels.info('events', name)
      assert.equal(state?.subscribers, 0)
      assert.ok(state && Math.abs(state.lastActivity - leaving) < 5_000)
    })
  }),

  isolatedCase(
    'counters - an engine counts dead-lettered, redelivered and expired messages since it was opened',
    async (context) => {
      const { channel } = context
      const counted = async () => ({ ...(await context.engine.stats()).sinceOpen })
      assert.deepEqual(await counted(), { deadLettered: 0, redelivered: 0, expired: 0, retried: 0 })
      const [queue, deadLetterQueue] = [channel('queue'), channel('dead')]
      await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 2, deadLetterQueue }))
      for (let i = 0; i < 2; i += 1) {
        const { receipt } = await receiveOne(context.engine, queue)
        await context.engine.queues.nack([receipt], CONSUMER)
      }
      await context.engine.queues.send(queue, queued('expires', { expirationMs: 1 }))
      await eventually(async () => {
        assert.deepEqual(await counted(), { deadLettered: 1, redelivered: 1, expired: 1, retried: 1 })
      })
      await context.engine.channels.delete('queues', queue)
      assert.deepEqual(await counted(), { deadLettered: 1, redelivered: 1, expired: 1, retried: 1 })
      await context.restart()
      assert.deepEqual(await counted(), { deadLettered: 0, redelivered: 0, expired: 0, retried: 0 })
    },
  ),

  contractCase('counters - a queue reports when its oldest waiting message was sent', async ({ engine, channel }) => {
    const queue = channel('ages')
    const oldest = () => engine.queues.oldestWaiting(queue)
    assert.equal(await oldest(), undefined)
    await engine.queues.send(queue, queued('delayed', { delayMs: 60_000 }))
    assert.equal(await oldest(), undefined)
    await engine.queues.send(queue, queued('first'))
    await pause(20)
    await engine.queues.send(queue, queued('second'))
    const [first] = await engine.queues.peek(queue, { maxMessages: 1 })
    assert.equal(await oldest(), first?.timestamp)
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.ack([receipt], CONSUMER)
    const [second] = await engine.queues.peek(queue, { maxMessages: 1 })
    await eventually(async () => assert.equal(await oldest(), second?.timestamp))
    await receiveOne(engine, queue)
    await eventually(async () => assert.equal(await oldest(), undefined))
  }),

  isolatedCase('C3 - counters: the counters of stored types survive a restart', async (context) => {
    const [queue, store] = [context.channel('queue'), context.channel('log')]
    const deadLetterQueue = context.channel('dead')
    await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
    await context.engine.queues.send(queue, queued('expires', { expirationMs: 1 }))
    await context.engine.queues.send(queue, queued('y'))
    const { receipt } = await receiveOne(context.engine, queue)
    await context.engine.queues.nack([receipt], CONSUMER)
    const second = await receiveOne(context.engine, queue)
    await context.engine.queues.ack([second.receipt], CONSUMER)
    await context.engine.eventsStore.append(store, storedEvent('x'))
    const relevant = async (type: 'queues' | 'events_store', name: string) => {
      const state = await context.engine.channels.info(type, name)
      assert.ok(state)
      const { incoming, incomingBytes, outgoing, outgoingBytes, lastActivity } = state
      return {
        incoming,
        incomingBytes,
        outgoing,
        outgoingBytes,
        lastActivity,
        deadLettered: state.queue?.deadLettered,
        expired: state.queue?.expired,
        store: state.eventsStore && { ...state.eventsStore },
      }
    }
    await eventually(async () => {
      const { incoming, outgoing, deadLettered, expired } = await relevant('queues', queue)
      assert.deepEqual([incoming, outgoing, deadLettered, expired], [3, 2, 1, 1])
    })
    const before = [await relevant('queues', queue), await relevant('events_store', store)]
    await context.restart()
    await eventually(async () => {
      assert.deepEqual([await relevant('queues', queue), await relevant('events_store', store)], before)
    })
  }),

  // ── The declared capabilities: each engine behaves as it declares ──

  contractCase(
    'capabilities - exactNackOrder: nacked messages return to their exact position, or come first',
    async ({ engine, channel }) => {
      const queue = channel('nack-order')
      await sendAll(engine, queue, numbered(6))
      const leased = await receiveMany(engine, queue, 4)
      for (const place of [2, 0, 3, 1]) {
        const { receipt } = leased[place] ?? assert.fail('four were leased')
        assert.equal((await engine.queues.nack([receipt], CONSUMER)).settled, 1)
      }
      const again = texts((await receiveMany(engine, queue, 6)).map(({ message }) => message))
      if (engine.capabilities.exactNackOrder) assert.deepEqual(again, numbered(6))
      else {
        assert.deepEqual(
          again.slice(0, 4).toSorted(),
          numbered(4),
          'nacked messages come before messages never delivered',
        )
        assert.deepEqual(again.slice(4), ['m5', 'm6'])
      }
    },
  ),

  contractCase(
    'capabilities - peekHidesLeased: peek omits leased messages, or shows them',
    async ({ engine, channel }) => {
      const queue = channel('peek-leased')
      await sendAll(engine, queue, numbered(3))
      await receiveOne(engine, queue, { leaseMs: LONG_LEASE_MS })
      const shown = texts(await engine.queues.peek(queue, { maxMessages: 10 }))
      assert.deepEqual(shown, engine.capabilities.peekHidesLeased ? ['m2', 'm3'] : numbered(3))
    },
  ),

  isolatedCase('capabilities - leaseSurvivesNode: a lease outlives its node, or ends with it', async (context) => {
    const queue = context.channel('survives')
    await sendAll(context.engine, queue, ['x'])
    const { receipt } = await receiveOne(context.engine, queue, { leaseMs: 20_000 })
    await context.restart()
    const { engine } = context
    if (engine.capabilities.leaseSurvivesNode) {
      assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 1, lost: [] })
      assert.deepEqual(await receive(engine, queue, { waitMs: 200 }), [])
    } else {
      // The engine forgot its leases, and cannot know whether the message was acked before.
      await rejectsWith('ENGINE_UNAVAILABLE', engine.queues.ack([receipt], CONSUMER))
      assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, 1), { settled: 0, lost: [receipt] })
      assert.equal(
        text((await receiveOne(engine, queue)).message),
        'x',
        'the message is available again, without its lease',
      )
    }
  }),

  contractCase(
    'capabilities - maxDelayedPerQueue: a queue accepts the declared number of delayed messages',
    async ({ engine, channel }) => {
      const queue = channel('delayed')
      const { maxDelayedPerQueue } = engine.capabilities
      assert.ok(Number.isSafeInteger(maxDelayedPerQueue) && maxDelayedPerQueue >= 0)
      const many = maxDelayedPerQueue === 0 ? 2_000 : Math.min(2_000, maxDelayedPerQueue)
      for (let sent = 0; sent < many; sent += 500) {
        await engine.queues.sendBatch(queue, Array.from({ length: Math.min(500, many - sent) }, delayed))
      }
      await eventually(async () => {
        assert.equal((await engine.channels.info('queues', queue))?.queue?.delayed, many)
      })
      if (many === maxDelayedPerQueue) await rejectsWith('QUEUE_FULL', engine.queues.send(queue, delayed()))
      await engine.queues.send(queue, queued('due'))
      assert.equal(
        text((await receiveOne(engine, queue)).message),
        'due',
        'messages that are due are delivered at once',
      )
    },
  ),

  isolatedCase('capabilities - fsyncBeforeAck: acknowledged messages survive a restart', async (context) => {
    assert.equal(typeof context.engine.capabilities.fsyncBeforeAck, 'boolean')
    // Neither a restart nor a killed process reveals a missing sync, so this case tests only the promise of both
    // declarations.
    const queue = context.channel('acknowledged')
    await sendAll(context.engine, queue, numbered(5))
    await context.restart()
    assert.equal((await context.engine.queues.peek(queue, { maxMessages: 10 })).length, 5)
  }),

  isolatedCase(
    'capabilities - expiryWithoutNode: expired messages are not delivered after a restart',
    async (context) => {
      assert.equal(typeof context.engine.capabilities.expiryWithoutNode, 'boolean')
      // Only the storage shows when its space is released, so this case tests only the promise of both declarations.
      const queue = context.channel('expired')
      await context.engine.queues.send(queue, queued('gone', { expirationMs: 50 }))
      await context.engine.queues.send(queue, queued('here', { expirationMs: 3_600_000 }))
      await context.restart()
      await eventually(async () => {
        const shown = await context.engine.queues.peek(queue, { maxMessages: 10 })
        assert.deepEqual(texts(shown), ['here'])
      })
    },
  ),

  contractCase('capabilities - remoteStorage: the engine declares where messages are stored', async ({ engine }) => {
    // This suite cannot cause an outage; the engines' own tests do.
    assert.equal(typeof engine.capabilities.remoteStorage, 'boolean')
  }),
]
