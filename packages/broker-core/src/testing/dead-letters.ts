import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, pause } from './contract-case.ts'
import {
  assertNothingDue,
  assertTags,
  CONSUMER,
  numbered,
  PRODUCER,
  queued,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'

async function held(engine: Engine, queue: string): Promise<number> {
  const state = (await engine.channels.info('queues', queue))?.queue
  return state ? state.waiting + state.delayed + state.inFlight : 0
}

/** Asserts the number of messages that the queues hold: an engine may move a message as a copy and then a removal. */
async function assertHeld(engine: Engine, count: number, ...queues: readonly string[]): Promise<void> {
  await eventually(async () => {
    let sum = 0
    for (const queue of queues) sum += await held(engine, queue)
    assert.equal(sum, count)
  })
}

/** Receives the message and nacks it, `count` times. */
async function fail(engine: Engine, queue: string, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER), { settled: 1, lost: [] })
  }
}

/** Cases for messages that reach their maximum number of receives. */
export const deadLetterCases: readonly ContractCase[] = [
  contractCase(
    'C2 - dead letters: after maxReceiveCount nacks a message moves, with tags for the reason',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('source'), channel('dead')]
      await engine.queues.send(
        queue,
        queued('poison', { id: 'the-id', metadata: 'meta', tags: { own: 'tag' }, maxReceiveCount: 2, deadLetterQueue }),
      )
      await fail(engine, queue, 2)
      const { message } = await receiveOne(engine, deadLetterQueue)
      assert.equal(text(message), 'poison')
      assert.equal(message.id, 'the-id')
      assert.equal(message.metadata, 'meta')
      assert.equal(message.clientId, PRODUCER)
      assert.equal(message.channel, deadLetterQueue)
      assert.equal(message.sequence, 1)
      const { dlq_reason: reason, ...tags } = message.tags
      assertTags(tags, { own: 'tag', dlq_source: queue, dlq_receive_count: '2' })
      assert.ok(reason, 'the tag dlq_reason has the reason')
      await assertNothingDue(engine, queue)
      await assertHeld(engine, 0, queue)
      assert.equal((await engine.channels.info('queues', queue))?.queue?.deadLettered, 1)
    },
  ),

  contractCase('C2 - dead letters: expired leases count as receives', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('lapsed'), channel('dead')]
    await engine.queues.send(queue, queued('slow poison', { maxReceiveCount: 2, deadLetterQueue }))
    await receiveOne(engine, queue, { leaseMs: 150 })
    await receiveOne(engine, queue, { leaseMs: 150 })
    const { message } = await receiveOne(engine, deadLetterQueue)
    assert.equal(text(message), 'slow poison')
    assert.equal(message.tags['dlq_receive_count'], '2')
    await assertHeld(engine, 0, queue)
  }),

  contractCase('dead letters - N receives allow at most N deliveries', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('at-most'), channel('dead')]
    await engine.queues.send(queue, queued('x', { maxReceiveCount: 3, deadLetterQueue }))
    const counts: number[] = []
    for (const settle of ['nack', 'lapse', 'nack']) {
      const { receipt, message } = await receiveOne(engine, queue, settle === 'lapse' ? { leaseMs: 150 } : {})
      counts.push(message.receiveCount)
      if (settle === 'nack') await engine.queues.nack([receipt], CONSUMER)
    }
    assert.deepEqual(counts, [1, 2, 3])
    assert.deepEqual(await receive(engine, queue, { waitMs: 200 }), [])
    await receiveOne(engine, deadLetterQueue)
  }),

  contractCase('dead letters - one receive allows one delivery', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('once'), channel('dead')]
    await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
    const { receipt } = await receiveOne(engine, queue)
    const second = receive(engine, queue, { waitMs: 400 })
    await engine.queues.nack([receipt], CONSUMER)
    assert.deepEqual(await second, [], 'it is not delivered again, though a receiver waits')
    await receiveOne(engine, deadLetterQueue)
  }),

  contractCase('dead letters - an ack of the last allowed delivery moves nothing', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('saved'), channel('dead')]
    await engine.queues.send(queue, queued('x', { maxReceiveCount: 2, deadLetterQueue }))
    await fail(engine, queue, 1)
    const { receipt } = await receiveOne(engine, queue)
    assert.equal((await engine.queues.ack([receipt], CONSUMER)).settled, 1)
    assert.deepEqual(await receive(engine, deadLetterQueue, { waitMs: 100 }), [])
    await assertHeld(engine, 0, queue)
  }),

  contractCase(
    'M9 - dead letters: maxReceiveCount without a dead-letter queue has no effect',
    async ({ engine, channel }) => {
      const queue = channel('count-alone')
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1 }))
      await fail(engine, queue, 4)
      assert.equal((await receiveOne(engine, queue)).message.receiveCount, 5)
    },
  ),

  contractCase(
    'M9 - dead letters: a dead-letter queue without maxReceiveCount has no effect',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('queue-alone'), channel('dead')]
      await engine.queues.send(queue, queued('x', { deadLetterQueue }))
      await fail(engine, queue, 4)
      assert.equal((await receiveOne(engine, queue)).message.receiveCount, 5)
      assert.equal(await engine.channels.info('queues', deadLetterQueue), undefined)
    },
  ),

  contractCase(
    'dead letters - the dead-letter queue is created with its first message',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('needs'), channel('dead')]
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
      assert.equal(await engine.channels.info('queues', deadLetterQueue), undefined)
      await fail(engine, queue, 1)
      await eventually(async () => {
        const state = await engine.channels.info('queues', deadLetterQueue)
        assert.equal(state?.queue?.waiting, 1)
      })
    },
  ),

  contractCase(
    'dead letters - a receiver waiting on the dead-letter queue gets the message',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('wakes'), channel('dead')]
      const waiting = receiveOne(engine, deadLetterQueue)
      await pause(30)
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
      await fail(engine, queue, 1)
      assert.equal(text((await waiting).message), 'x')
    },
  ),

  contractCase('dead letters - a dead letter does not expire', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('expiring'), channel('dead')]
    await engine.queues.send(queue, queued('x', { expirationMs: 2_000, maxReceiveCount: 1, deadLetterQueue }))
    await fail(engine, queue, 1)
    await pause(2_100)
    assert.equal((await receiveOne(engine, deadLetterQueue)).message.expiresAt, 0)
  }),

  contractCase(
    'C2 - dead letters: a message that expires during its last lease is removed',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('expired-held'), channel('dead')]
      await engine.queues.send(queue, queued('x', { expirationMs: 2_000, maxReceiveCount: 1, deadLetterQueue }))
      const { receipt } = await receiveOne(engine, queue)
      await pause(2_150)
      await engine.queues.nack([receipt], CONSUMER)
      await eventually(async () => {
        const state = (await engine.channels.info('queues', queue))?.queue
        assert.deepEqual([state?.expired, state?.deadLettered, state?.inFlight], [1, 0, 0])
      })
      assert.deepEqual(await receive(engine, deadLetterQueue, { waitMs: 100 }), [])
    },
  ),

  contractCase(
    'dead letters - a dead letter starts a new receive count and does not move again',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('stays'), channel('dead')]
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
      await fail(engine, queue, 1)
      for (let count = 1; count <= 4; count += 1) {
        const { receipt, message } = await receiveOne(engine, deadLetterQueue)
        assert.equal(message.receiveCount, count)
        await engine.queues.nack([receipt], CONSUMER)
      }
      await assertHeld(engine, 1, deadLetterQueue)
      await assertHeld(engine, 0, queue)
    },
  ),

  contractCase('dead letters - no message is lost or in both queues', async ({ engine, channel }) => {
    const [queue, deadLetterQueue] = [channel('many'), channel('dead')]
    const total = 40
    await Promise.all(
      numbered(total).map((body) =>
        engine.queues.send(queue, queued(body, { id: body, maxReceiveCount: 1, deadLetterQueue })),
      ),
    )
    const deliveries = await receiveMany(engine, queue, total)
    const settlements = await Promise.all(
      [deliveries.slice(0, 10), deliveries.slice(10, 15), deliveries.slice(15)].map((part) =>
        engine.queues.nack(
          part.map(({ receipt }) => receipt),
          CONSUMER,
        ),
      ),
    )
    assert.equal(
      settlements.reduce((sum, { settled }) => sum + settled, 0),
      total,
    )
    const dead = await receiveMany(engine, deadLetterQueue, total)
    assert.deepEqual(texts(dead.map(({ message }) => message)).toSorted(), numbered(total).toSorted())
    await assertNothingDue(engine, queue)
    await assertNothingDue(engine, deadLetterQueue)
    await assertHeld(engine, 0, queue)
  }),

  contractCase('dead letters - messages of one deduplication id all arrive', async ({ engine, channel }) => {
    const [one, two, deadLetterQueue] = [channel('one'), channel('two'), channel('dead')]
    const more = { deduplicationId: 'same', tags: { message_id: 'same' }, maxReceiveCount: 1, deadLetterQueue }
    await engine.queues.send(one, queued('from one', more))
    await engine.queues.send(two, queued('from two', more))
    await fail(engine, one, 1)
    await fail(engine, two, 1)
    const dead = await receiveMany(engine, deadLetterQueue, 2)
    assert.deepEqual(texts(dead.map(({ message }) => message)).toSorted(), ['from one', 'from two'])
  }),

  contractCase('dead letters - a chain of dead-letter queues does not loop', async ({ engine, channel }) => {
    const [one, two] = [channel('there'), channel('back')]
    await engine.queues.send(one, queued('x', { maxReceiveCount: 1, deadLetterQueue: two }))
    await engine.queues.send(two, queued('y', { maxReceiveCount: 1, deadLetterQueue: one }))
    const [x, y] = [await receiveOne(engine, one), await receiveOne(engine, two)]
    await engine.queues.nack([x.receipt, y.receipt], CONSUMER)
    await fail(engine, one, 2)
    await fail(engine, two, 2)
    assert.deepEqual(
      [text((await receiveOne(engine, one)).message), text((await receiveOne(engine, two)).message)],
      ['y', 'x'],
    )
  }),

  isolatedCase(
    'dead letters - a message whose dead-letter queue is full is not lost',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('to-full'), channel('full')]
      await sendAll(engine, deadLetterQueue, ['a', 'b'])
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
      const { receipt } = await receiveOne(engine, queue)
      await engine.queues.nack([receipt], CONSUMER)
      await pause(100)
      await assertHeld(engine, 3, queue, deadLetterQueue)
      for (const delivery of await receiveMany(engine, deadLetterQueue, 2)) {
        await engine.queues.ack([delivery.receipt], CONSUMER)
      }
      await assertHeld(engine, 1, queue, deadLetterQueue)
    },
    { queueMaxMessages: 2 },
  ),

  isolatedCase(
    'dead letters - a message is not lost if its dead-letter queue would exceed the channel limit',
    async ({ engine, channel }) => {
      const [queue, deadLetterQueue] = [channel('only'), channel('too-many')]
      await engine.queues.send(queue, queued('x', { maxReceiveCount: 1, deadLetterQueue }))
      const { receipt } = await receiveOne(engine, queue)
      await engine.queues.nack([receipt], CONSUMER)
      await pause(100)
      await assertHeld(engine, 1, queue, deadLetterQueue)
    },
    { maxChannels: 1 },
  ),
]
