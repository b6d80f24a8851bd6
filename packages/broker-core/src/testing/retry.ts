import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { NackOptions } from '../engine/queue-engine.ts'
import type { RetrySettings } from '../settings/channel-settings.ts'
import { retryDelayMs } from '../settings/channel-settings.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, pause, rejectsWith } from './contract-case.ts'
import { assertNothingDue, CONSUMER, queued, receive, receiveMany, receiveOne, sendAll, text } from './messages.ts'

/** Timers of a process and of the servers may differ by some ms. */
const TOLERANCE_MS = 20

const DONE = { settled: 1, lost: [] }

function setRetry(engine: Engine, match: string, more: Partial<RetrySettings>): RetrySettings {
  const retry = {
    max_receive_count: 0,
    dead_letter_queue: '',
    min_backoff_seconds: 0,
    max_backoff_seconds: 600,
    backoff_factor: 2,
    jitter: 0,
    ...more,
  }
  engine.settings.replace([{ type: 'queues', match, source: 'api', retry }])
  return retry
}

/** Receives the next message and nacks it; returns the number of its receives. */
async function fail(engine: Engine, queue: string, options?: NackOptions): Promise<number> {
  const { receipt, message } = await receiveOne(engine, queue)
  assert.deepEqual(await engine.queues.nack([receipt], CONSUMER, options), DONE)
  return message.receiveCount
}

async function assertCounts(
  engine: Engine,
  queue: string,
  expected: readonly [waiting: number, delayed: number, inFlight: number],
): Promise<void> {
  await eventually(async () => {
    const state = (await engine.channels.info('queues', queue))?.queue
    assert.deepEqual([state?.waiting, state?.delayed, state?.inFlight], expected)
  })
}

function assertDelay(since: number, delayMs: number): void {
  const elapsed = performance.now() - since
  assert.ok(elapsed >= delayMs - TOLERANCE_MS, `the message came after ${elapsed} ms, and its delay is ${delayMs} ms`)
}

/** Cases for the time between two attempts, and for messages that move by the policy of their queue or by a reject. */
export const retryCases: readonly ContractCase[] = [
  contractCase(
    'retry - a nack with a delay ends the receipt, counts a receive and makes the message delayed',
    async ({ engine, channel }) => {
      const queue = channel('delayed')
      await engine.queues.send(queue, queued('x'))
      const { receipt } = await receiveOne(engine, queue)
      const since = performance.now()
      assert.deepEqual(await engine.queues.nack([receipt], CONSUMER, { delayMs: 3_000 }), DONE)
      await assertNothingDue(engine, queue)
      await assertCounts(engine, queue, [0, 1, 0])
      assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 0, lost: [receipt] })
      assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, 1_000), { settled: 0, lost: [receipt] })
      assert.deepEqual(await engine.queues.nack([receipt], CONSUMER), DONE, 'a repeat has the first result')
      const again = await receiveOne(engine, queue)
      assertDelay(since, 3_000)
      assert.deepEqual([text(again.message), again.message.receiveCount], ['x', 2])
      await engine.queues.ack([again.receipt], CONSUMER)
      await assertCounts(engine, queue, [0, 0, 0])
    },
  ),

  contractCase('retry - a message comes before later ones after its delay', async ({ engine, channel }) => {
    const queue = channel('place')
    await sendAll(engine, queue, ['a', 'b'])
    const [a, b] = await receiveMany(engine, queue, 2)
    assert.ok(a && b)
    await engine.queues.nack([b.receipt], CONSUMER, { delayMs: 60_000 })
    await engine.queues.nack([a.receipt], CONSUMER, { delayMs: 2_000 })
    await sendAll(engine, queue, ['c'])
    assert.equal(text((await receiveOne(engine, queue)).message), 'c')
    await sendAll(engine, queue, ['d'])
    await eventually(async () => assert.equal((await engine.channels.info('queues', queue))?.queue?.waiting, 2))
    // The counts are those of this node: the servers may have the message a little later.
    if (engine.capabilities.remoteStorage) await pause(500)
    assert.equal(text((await receiveOne(engine, queue)).message), 'a')
    assert.equal(text((await receiveOne(engine, queue)).message), 'd')
  }),

  contractCase('retry - a purge removes messages that wait for their next attempt', async ({ engine, channel }) => {
    const queue = channel('purged')
    await engine.queues.send(queue, queued('x'))
    await fail(engine, queue, { delayMs: 60_000 })
    assert.equal(await engine.queues.purge(queue), 1)
    await engine.queues.send(queue, queued('y'))
    await assertCounts(engine, queue, [1, 0, 0])
  }),

  contractCase('retry - a message expires while it waits for its next attempt', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('expiring'), channel('dead')]
    await engine.queues.send(queue, queued('x', { expirationMs: 5_000, maxReceiveCount: 2, deadLetterQueue }))
    await fail(engine, queue, { delayMs: 60_000 })
    await eventually(async () => {
      const state = (await engine.channels.info('queues', queue))?.queue
      assert.deepEqual([state?.expired, state?.delayed, state?.waiting, state?.deadLettered], [1, 0, 0, 0])
    })
    assert.equal(await engine.channels.info('queues', deadLetterQueue), undefined)
  }),

  isolatedCase('retry - a delay outlasts a restart', async (context) => {
    const queue = context.channel('restarted')
    await context.engine.queues.send(queue, queued('x'))
    const { receipt } = await receiveOne(context.engine, queue)
    const since = performance.now()
    await context.engine.queues.nack([receipt], CONSUMER, { delayMs: 3_000 })
    await context.restart()
    if (performance.now() - since < 2_500) await assertNothingDue(context.engine, queue)
    const { message } = await receiveOne(context.engine, queue)
    assertDelay(since, 3_000)
    assert.equal(message.receiveCount, 2)
  }),

  isolatedCase('retry - delays after nacks follow the policy', async ({ engine, channel }) => {
    const queue = channel('policy')
    const retry = setRetry(engine, queue, { min_backoff_seconds: 0.2, max_backoff_seconds: 0.5 })
    await engine.queues.send(queue, queued('x'))
    let next = await receiveOne(engine, queue)
    for (const [i, delayMs] of [200, 400, 500].entries()) {
      assert.equal(retryDelayMs(retry, i + 1), delayMs)
      const since = performance.now()
      await engine.queues.nack([next.receipt], CONSUMER)
      next = await receiveOne(engine, queue)
      assertDelay(since, delayMs)
      assert.equal(next.message.receiveCount, i + 2)
    }
  }),

  isolatedCase('retry - a lease that ends by its time-out delays the message by the policy', async (context) => {
    const { engine, channel } = context
    const queue = channel('lapsed')
    setRetry(engine, queue, { min_backoff_seconds: 0.6 })
    await engine.queues.send(queue, queued('x'))
    const since = performance.now()
    await receiveOne(engine, queue, { leaseMs: 150 })
    const { message } = await receiveOne(engine, queue)
    assertDelay(since, 750)
    assert.equal(message.receiveCount, 2)
  }),

  isolatedCase('retry - a delay by the policy outlasts a restart', async (context) => {
    const queue = context.channel('policy-restarted')
    setRetry(context.engine, queue, { min_backoff_seconds: 3 })
    await context.engine.queues.send(queue, queued('x'))
    const since = performance.now()
    await fail(context.engine, queue)
    await context.restart()
    assert.equal((await receiveOne(context.engine, queue)).message.receiveCount, 2)
    assertDelay(since, 3_000)
  }),

  isolatedCase('retry - an explicit delay wins over the policy', async ({ engine, channel }) => {
    const queue = channel('explicit')
    setRetry(engine, queue, { min_backoff_seconds: 600 })
    await engine.queues.send(queue, queued('x'))
    await fail(engine, queue, { delayMs: 0 })
    const since = performance.now()
    await fail(engine, queue, { delayMs: 300 })
    assert.equal(await fail(engine, queue), 3)
    assertDelay(since, 300)
    await assertCounts(engine, queue, [0, 1, 0])
  }),

  isolatedCase(
    'retry - a message without limits moves by the policy, after nacks and lapsed leases',
    async ({ engine, channel }) => {
      const [queue, dead] = [channel('plain'), channel('dead')]
      setRetry(engine, queue, { max_receive_count: 2, dead_letter_queue: dead })
      await engine.queues.send(queue, queued('x', { tags: { own: 'tag' } }))
      await receiveOne(engine, queue, { leaseMs: 150 })
      assert.equal(await fail(engine, queue), 2)
      const { message } = await receiveOne(engine, dead)
      const { own, dlq_source: source, dlq_reason: reason, dlq_receive_count: count } = message.tags
      assert.deepEqual([own, source, reason, count], ['tag', queue, 'max_receive_count', '2'])
      await assertCounts(engine, queue, [0, 0, 0])
      assert.equal((await engine.channels.info('queues', queue))?.queue?.deadLettered, 1)
    },
  ),

  isolatedCase('retry - a changed policy applies to messages that wait', async ({ engine, channel }) => {
    const [queue, dead] = [channel('changed'), channel('dead')]
    await engine.queues.send(queue, queued('x'))
    const { receipt } = await receiveOne(engine, queue)
    setRetry(engine, queue, { max_receive_count: 1, dead_letter_queue: dead })
    await engine.queues.nack([receipt], CONSUMER)
    await receiveOne(engine, dead)

    await engine.queues.send(queue, queued('y'))
    engine.settings.replace([])
    for (let count = 1; count <= 3; count += 1) assert.equal(await fail(engine, queue), count)
    assert.equal((await receiveOne(engine, queue)).message.receiveCount, 4)
  }),

  isolatedCase('retry - the values of a message win over the policy, each alone', async ({ engine, channel }) => {
    const [queue, own, dead] = [channel('own'), channel('own-dead'), channel('dead')]
    setRetry(engine, queue, { max_receive_count: 1, dead_letter_queue: dead })
    await engine.queues.send(queue, queued('both', { maxReceiveCount: 2, deadLetterQueue: own }))
    assert.deepEqual([await fail(engine, queue), await fail(engine, queue)], [1, 2])
    assert.equal(text((await receiveOne(engine, own)).message), 'both')
    await engine.queues.send(queue, queued('count', { maxReceiveCount: 2 }))
    assert.deepEqual([await fail(engine, queue), await fail(engine, queue)], [1, 2])
    assert.equal(text((await receiveOne(engine, dead)).message), 'count')
    await engine.queues.send(queue, queued('queue', { deadLetterQueue: own }))
    await fail(engine, queue)
    assert.equal(text((await receiveOne(engine, own)).message), 'queue')
  }),

  isolatedCase('retry - dead letters stay although a policy matches their queue', async ({ engine, channel }) => {
    const [queue, dead, next] = [channel('q'), channel('dead'), channel('next')]
    setRetry(engine, queue, { max_receive_count: 1, dead_letter_queue: dead })
    // Larger than the messages that stay in memory after a delivery.
    await engine.queues.send(queue, queued('x'.repeat(20_000)))
    await engine.queues.send(queue, queued('y'))
    await fail(engine, queue)
    await fail(engine, queue)
    setRetry(engine, '*', { max_receive_count: 1, dead_letter_queue: next })
    for (let count = 0; count < 6; count += 1) await fail(engine, dead)
    const [letter] = await receiveMany(engine, dead, 2)
    assert.ok(letter)
    await rejectsWith('NO_DEAD_LETTER_QUEUE', engine.queues.nack([letter.receipt], CONSUMER, { reject: true }))
    assert.equal(await engine.channels.info('queues', next), undefined)
  }),

  isolatedCase('retry - a policy whose dead-letter queue is the queue itself moves nothing', async (context) => {
    const { engine, channel } = context
    const queue = channel('itself')
    setRetry(engine, queue, { max_receive_count: 1, dead_letter_queue: queue })
    await engine.queues.send(queue, queued('x'))
    assert.deepEqual([await fail(engine, queue), await fail(engine, queue)], [1, 2])
    assert.equal((await receiveOne(engine, queue)).message.tags['dlq_source'], undefined)
  }),

  contractCase('reject - a message moves to its dead-letter queue at once', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('q'), channel('dead')]
    await engine.queues.send(queue, queued('x', { maxReceiveCount: 5, deadLetterQueue }))
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER, { reject: true }), DONE)
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER, { reject: true }), DONE)
    const { message } = await receiveOne(engine, deadLetterQueue)
    const { dlq_source: source, dlq_reason: reason, dlq_receive_count: count } = message.tags
    assert.deepEqual([text(message), source, reason, count], ['x', queue, 'rejected', '1'])
    await assertCounts(engine, queue, [0, 0, 0])
    assert.equal((await engine.channels.info('queues', queue))?.queue?.deadLettered, 1)
  }),

  isolatedCase('reject - a message moves to the dead-letter queue of the policy', async ({ engine, channel }) => {
    const [queue, dead] = [channel('q'), channel('dead')]
    setRetry(engine, queue, { dead_letter_queue: dead })
    await engine.queues.send(queue, queued('x'))
    await fail(engine, queue, { reject: true })
    assert.equal((await receiveOne(engine, dead)).message.tags['dlq_reason'], 'rejected')
  }),

  contractCase('reject - a call is refused as a whole if a message has no dead-letter queue', async (context) => {
    const { engine, channel } = context
    const [queue, deadLetterQueue] = [channel('q'), channel('dead')]
    await engine.queues.send(queue, queued('with', { deadLetterQueue }))
    await engine.queues.send(queue, queued('without'))
    const deliveries = await receiveMany(engine, queue, 2)
    const receipts = deliveries.map(({ receipt }) => receipt)
    const error = await rejectsWith('NO_DEAD_LETTER_QUEUE', engine.queues.nack(receipts, CONSUMER, { reject: true }))
    assert.equal(error.details['channel'], queue)
    await assertCounts(engine, queue, [0, 0, 2])
    assert.equal(await engine.channels.info('queues', deadLetterQueue), undefined)
    assert.deepEqual(await engine.queues.ack(receipts, CONSUMER), { settled: 2, lost: [] })
    assert.deepEqual(await engine.queues.nack(['made-up'], CONSUMER, { reject: true }), {
      settled: 0,
      lost: ['made-up'],
    })
  }),

  isolatedCase('retry - an engine counts the messages that returned for another attempt', async (context) => {
    const { engine, channel } = context
    const [queue, deadLetterQueue] = [channel('q'), channel('dead')]
    await engine.queues.send(queue, queued('x', { deadLetterQueue }))
    await fail(engine, queue)
    await fail(engine, queue, { delayMs: 10 })
    await receiveOne(engine, queue, { leaseMs: 100 })
    await fail(engine, queue, { reject: true })
    assert.deepEqual(await receive(engine, queue, { waitMs: 0 }), [])
    assert.equal((await engine.stats()).sinceOpen.retried, 3)
  }),
]
