import assert from 'node:assert/strict'

import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { appendAll, CONSUMER, storedEvent, numbered, outgoing, queued, receiveOne, reply, sendAll } from './messages.ts'
import { eventually, Inbox, PATIENCE_MS, pause } from './waiting.ts'

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
      assert.deepEqual(await counted(), { deadLettered: 0, redelivered: 0, expired: 0 })
      const [queue, deadLetterQueue] = [channel('queue'), channel('dead')]
      await context.engine.queues.send(queue, queued('x', { maxReceiveCount: 2, deadLetterQueue }))
      for (let i = 0; i < 2; i += 1) {
        const { receipt } = await receiveOne(context.engine, queue)
        await context.engine.queues.nack([receipt], CONSUMER)
      }
      await context.engine.queues.send(queue, queued('expires', { expirationMs: 1 }))
      await eventually(async () => {
        assert.deepEqual(await counted(), { deadLettered: 1, redelivered: 1, expired: 1 })
      })
      await context.engine.channels.delete('queues', queue)
      assert.deepEqual(await counted(), { deadLettered: 1, redelivered: 1, expired: 1 })
      await context.restart()
      assert.deepEqual(await counted(), { deadLettered: 0, redelivered: 0, expired: 0 })
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
]
