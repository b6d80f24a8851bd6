import assert from 'node:assert/strict'

import type { QueueSend } from '../engine/queue-engine.ts'
import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import {
  CONSUMER,
  LONG_LEASE_MS,
  numbered,
  queued,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'
import { eventually, rejectsWith } from './waiting.ts'

function delayed(): QueueSend {
  return queued('x', { delayMs: 3_600_000 })
}

/** The declared capabilities: each engine behaves as it declares. */
export const capabilityCases: readonly ContractCase[] = [
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
