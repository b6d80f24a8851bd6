import assert from 'node:assert/strict'

import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, pause } from './contract-case.ts'
import { assertNothingDue, CONSUMER, LONG_LEASE_MS, queued, receive, receiveOne, sendAll, text } from './messages.ts'

/** The tolerated difference between the clocks of engine and test, in ms. */
const CLOCK_MS = 60

/** Cases for delay and expiration. */
export const queueTimeCases: readonly ContractCase[] = [
  contractCase(
    'queues - a delayed message is visible when it is due, and goes to a waiting receiver',
    async ({ engine, channel }) => {
      const queue = channel('delay')
      const started = performance.now()
      await engine.queues.send(queue, queued('later', { delayMs: 300 }))
      const { message } = await receiveOne(engine, queue)
      assert.equal(text(message), 'later')
      assert.ok(performance.now() - started >= 300 - CLOCK_MS, 'not before it is due')
      assert.equal(message.receiveCount, 1, 'a delay does not count as a receive')
    },
  ),

  contractCase('C2 - queues: a delayed message does not delay others', async ({ engine, channel }) => {
    const queue = channel('delay-passed')
    await engine.queues.send(queue, queued('later', { delayMs: 60_000 }))
    await sendAll(engine, queue, ['now', 'next'])
    assert.equal(text((await receiveOne(engine, queue)).message), 'now')
    assert.equal(text((await receiveOne(engine, queue)).message), 'next')
    await assertNothingDue(engine, queue)
  }),

  contractCase('queues - delayed messages arrive in the order of their due times', async ({ engine, channel }) => {
    const queue = channel('delay-order')
    await engine.queues.sendBatch(queue, [queued('second', { delayMs: 1_500 }), queued('first', { delayMs: 200 })])
    const received: string[] = []
    while (received.length < 2) {
      const { receipt, message } = await receiveOne(engine, queue)
      received.push(text(message))
      await engine.queues.ack([receipt], CONSUMER)
    }
    assert.deepEqual(received, ['first', 'second'])
  }),

  contractCase(
    'queues - a message that is due earlier wakes a receiver that waits for a later one',
    async ({ engine, channel }) => {
      const queue = channel('delay-earlier')
      await engine.queues.send(queue, queued('much later', { delayMs: 60_000 }))
      const waiting = receiveOne(engine, queue)
      await pause(30)
      await engine.queues.send(queue, queued('soon', { delayMs: 150 }))
      assert.equal(text((await waiting).message), 'soon')
    },
  ),

  contractCase('queues - a delayed message counts as delayed, then as waiting', async ({ engine, channel }) => {
    const queue = channel('delay-counted')
    await engine.queues.send(queue, queued('later', { delayMs: 3_000 }))
    const before = await engine.channels.info('queues', queue)
    assert.deepEqual([before?.queue?.waiting, before?.queue?.delayed], [0, 1])
    await eventually(async () => {
      const after = await engine.channels.info('queues', queue)
      assert.deepEqual([after?.queue?.waiting, after?.queue?.delayed], [1, 0])
    })
  }),

  contractCase('C2 - queues: an expired message is never delivered, and is counted', async ({ engine, channel }) => {
    const queue = channel('expired')
    await engine.queues.send(queue, queued('short-lived', { expirationMs: 100 }))
    await engine.queues.send(queue, queued('lasting'))
    await pause(250)
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'lasting')
    await assertNothingDue(engine, queue)
    await eventually(async () => {
      const state = await engine.channels.info('queues', queue)
      assert.equal(state?.queue?.expired, 1)
      assert.deepEqual([state?.queue?.waiting, state?.queue?.inFlight], [0, 1])
    })
  }),

  contractCase('C2 - queues: a message expires without a receiver', async ({ engine, channel }) => {
    const queue = channel('expired-alone')
    await engine.queues.send(queue, queued('short-lived', { expirationMs: 80 }))
    await eventually(async () => {
      const state = await engine.channels.info('queues', queue)
      assert.deepEqual([state?.queue?.waiting, state?.queue?.expired, state?.queue?.bytes], [0, 1, 0])
    })
  }),

  contractCase('C2 - queues: an expired message does not go to the dead-letter queue', async ({ engine, channel }) => {
    const queue = channel('expired-dead')
    const deadLetterQueue = channel('dead')
    await engine.queues.send(queue, queued('x', { expirationMs: 80, maxReceiveCount: 1, deadLetterQueue }))
    await eventually(async () => {
      assert.equal((await engine.channels.info('queues', queue))?.queue?.expired, 1)
    })
    assert.equal((await engine.channels.info('queues', queue))?.queue?.deadLettered, 0)
    assert.deepEqual(await receive(engine, deadLetterQueue, { waitMs: 100 }), [])
  }),

  contractCase('queues - a message that has not expired yet is delivered', async ({ engine, channel }) => {
    const queue = channel('not-expired')
    await engine.queues.send(queue, queued('in time', { expirationMs: 30_000 }))
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'in time')
    assert.ok(Math.abs(message.expiresAt - message.timestamp - 30_000) < 1_000)
  }),

  contractCase('queues - a delay does not extend the expiration', async ({ engine, channel }) => {
    const queue = channel('delay-expiration')
    await engine.queues.send(queue, queued('dead on arrival', { delayMs: 300, expirationMs: 100 }))
    assert.deepEqual(await receive(engine, queue, { waitMs: 700 }), [])
    await eventually(async () => {
      const state = await engine.channels.info('queues', queue)
      assert.deepEqual([state?.queue?.delayed, state?.queue?.expired], [0, 1])
    })
  }),

  contractCase('queues - a delayed message is delivered before it expires', async ({ engine, channel }) => {
    const queue = channel('delay-then-expiration')
    await engine.queues.send(queue, queued('between', { delayMs: 150, expirationMs: 30_000 }))
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'between')
    assert.ok(Math.abs(message.expiresAt - message.timestamp - 30_000) < 1_000, 'expiry counts from the send')
  }),

  contractCase('queues - a message that expires while leased can be acked', async ({ engine, channel }) => {
    const queue = channel('expired-held')
    await engine.queues.send(queue, queued('held', { expirationMs: 2_000 }))
    const { receipt } = await receiveOne(engine, queue, { leaseMs: LONG_LEASE_MS })
    await pause(2_150)
    assert.equal((await engine.queues.ack([receipt], CONSUMER)).settled, 1)
    await assertNothingDue(engine, queue)
  }),

  contractCase('C2 - queues: a message that expires while leased is not redelivered', async ({ engine, channel }) => {
    const nacked = channel('expired-nacked')
    const lapsed = channel('expired-lapsed')
    await engine.queues.send(nacked, queued('x', { expirationMs: 2_000 }))
    await engine.queues.send(lapsed, queued('x', { expirationMs: 2_000 }))
    const { receipt } = await receiveOne(engine, nacked)
    await receiveOne(engine, lapsed, { leaseMs: 2_100 })
    await pause(2_150)
    await engine.queues.nack([receipt], CONSUMER)
    const [afterNack, afterLapse] = await Promise.all([
      receive(engine, nacked, { waitMs: 400 }),
      receive(engine, lapsed, { waitMs: 400 }),
    ])
    assert.deepEqual([afterNack.length, afterLapse.length], [0, 0])
    await eventually(async () => {
      assert.equal((await engine.channels.info('queues', nacked))?.queue?.expired, 1)
      assert.equal((await engine.channels.info('queues', lapsed))?.queue?.expired, 1)
    })
  }),
]
