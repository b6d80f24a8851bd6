import assert from 'node:assert/strict'

import type { ContractCase } from './contract-case.ts'
import { contractCase, pause, rejectsBecause, within } from './contract-case.ts'
import {
  assertNothingDue,
  CONSUMER,
  numbered,
  queued,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'

/** Cases for receives: waiting, the number of messages, the order of receivers, and the end of a wait. */
export const queueReceiveCases: readonly ContractCase[] = [
  contractCase(
    'M9 - queues: a waiting receive returns as soon as there is one message',
    async ({ engine, channel }) => {
      const queue = channel('long-poll')
      await engine.channels.create('queues', queue)
      const received = receive(engine, queue, { maxMessages: 10 })
      await pause(30)
      await engine.queues.send(queue, queued('wake'))
      assert.deepEqual(texts((await received).map(({ message }) => message)), ['wake'])
    },
  ),

  contractCase(
    'queues - a receive returns the available messages and does not wait for more',
    async ({ engine, channel }) => {
      const queue = channel('what-is-there')
      await sendAll(engine, queue, numbered(3))
      const started = performance.now()
      const deliveries = await receive(engine, queue, { maxMessages: 100, waitMs: 60_000 })
      assert.ok(performance.now() - started < 30_000, 'it returned before its time-out')
      assert.ok(deliveries.length >= 1)
      const rest = await receiveMany(engine, queue, 3 - deliveries.length)
      assert.deepEqual(texts([...deliveries, ...rest].map(({ message }) => message)), numbered(3))
    },
  ),

  contractCase('queues - a receive without a message returns empty after its time-out', async ({ engine, channel }) => {
    const queue = channel('in-vain')
    await engine.channels.create('queues', queue)
    const started = performance.now()
    assert.deepEqual(await receive(engine, queue, { waitMs: 250 }), [])
    assert.ok(performance.now() - started >= 200, 'it waited')
  }),

  contractCase('queues - a receive without a wait returns empty at once', async ({ engine, channel }) => {
    const queue = channel('no-wait')
    await engine.channels.create('queues', queue)
    assert.deepEqual(await within(receive(engine, queue, { waitMs: 0 }), 'an answer at once'), [])
  }),

  contractCase(
    'queues - receiving from a queue that does not exist returns no messages',
    async ({ engine, channel }) => {
      const queue = channel('missing')
      assert.deepEqual(await receive(engine, queue, { waitMs: 0 }), [])
      assert.deepEqual(await receive(engine, queue, { waitMs: 100 }), [])
      assert.equal(await engine.channels.info('queues', queue), undefined)
    },
  ),

  contractCase('queues - a receive waits for a queue to be created', async ({ engine, channel }) => {
    const queue = channel('not-yet')
    const received = receiveOne(engine, queue)
    await pause(30)
    await engine.queues.send(queue, queued('first ever'))
    assert.equal(text((await received).message), 'first ever')
  }),

  contractCase('queues - waiting receivers are served in the order of their calls', async ({ engine, channel }) => {
    const queue = channel('in-line')
    await engine.channels.create('queues', queue)
    const waiting = []
    for (let i = 0; i < 4; i += 1) {
      waiting.push(receiveOne(engine, queue))
      await pause(20)
    }
    await sendAll(engine, queue, numbered(4))
    const deliveries = await Promise.all(waiting)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)), numbered(4))
  }),

  contractCase('queues - no more than maxMessages are returned', async ({ engine, channel }) => {
    const queue = channel('max-messages')
    await engine.queues.sendBatch(
      queue,
      numbered(10).map((body) => queued(body)),
    )
    const first = await receive(engine, queue, { maxMessages: 4 })
    assert.deepEqual(texts(first.map(({ message }) => message)), numbered(4))
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'm5')
  }),

  contractCase('queues - maxBytes limits a result, but one message is always returned', async ({ engine, channel }) => {
    const queue = channel('max-bytes')
    await engine.queues.sendBatch(
      queue,
      Array.from({ length: 6 }, (_, i) => queued(`${i}${'x'.repeat(999)}`)),
    )
    const smallest = await receive(engine, queue, { maxMessages: 6, maxBytes: 10 })
    assert.equal(smallest.length, 1, 'one message is returned although it exceeds the limit')
    const some = await receive(engine, queue, { maxMessages: 6, maxBytes: 2_500 })
    assert.ok(some.length === 2 || some.length === 3, `about 2,500 bytes are returned, not ${some.length} messages`)
    const rest = await receiveMany(engine, queue, 5 - some.length, { maxBytes: 1_000_000 })
    assert.deepEqual(
      [...smallest, ...some, ...rest].map(({ message }) => text(message).slice(0, 1)),
      ['0', '1', '2', '3', '4', '5'],
    )
  }),

  contractCase(
    'queues - sizeOf replaces the size of a message, and messages that do not fit are neither leased nor counted',
    async ({ engine, channel }) => {
      const queue = channel('size-of')
      await sendAll(engine, queue, numbered(5))
      let more = 0
      const limit = { maxBytes: 250, sizeOf: () => 100, onMore: () => (more += 1) }
      assert.deepEqual(texts(await engine.queues.peek(queue, { maxMessages: 5, ...limit })), numbered(2))
      assert.equal(more, 1)
      const some = await receive(engine, queue, { maxMessages: 5, ...limit })
      assert.deepEqual(texts(some.map(({ message }) => message)), numbered(2))
      assert.equal(more, 2)
      const rest = await receiveMany(engine, queue, 3, { maxBytes: 1_000_000 })
      assert.deepEqual(
        rest.map(({ message }) => [text(message), message.receiveCount]),
        numbered(5)
          .slice(2)
          .map((body) => [body, 1]),
      )
      assert.equal(more, 2)
    },
  ),

  contractCase('queues - onMore reports that a large message was left in its place', async ({ engine, channel }) => {
    const queue = channel('size-more')
    await engine.queues.sendBatch(
      queue,
      numbered(3).map((body) => queued(body.padEnd(100_000, '.'))),
    )
    let more = 0
    const limit = { maxMessages: 3, maxBytes: 10, onMore: () => (more += 1) }
    assert.equal((await engine.queues.peek(queue, limit)).length, 1)
    assert.equal(more, 1)
    assert.equal((await engine.queues.peek(queue, { ...limit, maxMessages: 1 })).length, 1)
    assert.equal(more, 1, 'maxMessages keeps messages out of the result, and not maxBytes')
  }),

  contractCase('queues - maxBytes counts metadata and tags as well', async ({ engine, channel }) => {
    const queue = channel('max-bytes-all')
    await engine.queues.sendBatch(queue, [
      queued('m1', { metadata: 'x'.repeat(2_000) }),
      queued('m2', { tags: { large: 'x'.repeat(2_000) } }),
      queued('m3'),
    ])
    assert.equal((await engine.queues.peek(queue, { maxMessages: 3, maxBytes: 2_500 })).length, 1)
    const answers = [1, 1, 1].map(() => receive(engine, queue, { maxMessages: 2, maxBytes: 1_500 }))
    assert.deepEqual((await Promise.all(answers)).flat().length, 3)
    assert.equal((await answers[0])?.length, 1, 'the metadata of the first message fills the answer')
  }),

  contractCase('queues - one of two concurrent receivers gets a message', async ({ engine, channel }) => {
    const queue = channel('race')
    await engine.channels.create('queues', queue)
    for (let round = 0; round < 3; round += 1) {
      const over = new AbortController()
      const receivers = [
        receive(engine, queue, { signal: over.signal }),
        receive(engine, queue, { signal: over.signal }),
      ]
      await engine.queues.send(queue, queued(`round ${round}`))
      const outcomes = Promise.allSettled(receivers)
      await Promise.race(receivers)
      // Time for the other receiver to get the message too, if the engine makes that mistake.
      await pause(100)
      over.abort()
      const deliveries = (await outcomes).flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
      assert.deepEqual(texts(deliveries.map(({ message }) => message)), [`round ${round}`])
      await engine.queues.ack(
        deliveries.map(({ receipt }) => receipt),
        CONSUMER,
      )
    }
    await assertNothingDue(engine, queue)
  }),

  contractCase('queues - many receivers share a queue without loss or repeat', async ({ engine, channel }) => {
    const queue = channel('shared')
    const total = 120
    const seen: string[] = []
    const done = new AbortController()
    const work = async (): Promise<void> => {
      while (!done.signal.aborted) {
        const deliveries = await receive(engine, queue, { maxMessages: 5, signal: done.signal }).catch(() => [])
        seen.push(...texts(deliveries.map(({ message }) => message)))
        const { lost } = await engine.queues.ack(
          deliveries.map(({ receipt }) => receipt),
          CONSUMER,
        )
        assert.deepEqual([...lost], [])
        if (seen.length >= total) done.abort()
      }
    }
    const workers = Array.from({ length: 6 }, work)
    await Promise.all(numbered(total).map((body) => engine.queues.send(queue, queued(body))))
    await within(Promise.all(workers), () => `${total} messages; ${seen.length} came`)
    assert.deepEqual(seen.toSorted(), numbered(total).toSorted())
    await assertNothingDue(engine, queue)
  }),

  contractCase('queues - aborting a waiting receive ends it and leaves nothing leased', async ({ engine, channel }) => {
    const queue = channel('abort')
    await engine.channels.create('queues', queue)
    const leaving = new AbortController()
    const reason = new Error('the client disconnected')
    const waiting = receive(engine, queue, { signal: leaving.signal })
    await pause(30)
    leaving.abort(reason)
    await rejectsBecause(reason, waiting)
    await engine.queues.send(queue, queued('for the next one'))
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'for the next one')
    assert.equal(message.receiveCount, 1)
  }),

  contractCase('queues - a receive with an aborted signal leases nothing', async ({ engine, channel }) => {
    const queue = channel('aborted')
    await engine.queues.send(queue, queued('untouched'))
    const reason = new Error('aborted before the call')
    await rejectsBecause(reason, receive(engine, queue, { signal: AbortSignal.abort(reason) }))
    assert.equal((await receiveOne(engine, queue, { waitMs: 5_000 })).message.receiveCount, 1)
  }),

  contractCase(
    'queues - an abort that races with a send loses nothing and counts nothing',
    async ({ engine, channel }) => {
      const queue = channel('abort-race')
      for (let round = 0; round < 25; round += 1) {
        const leaving = new AbortController()
        const waiting = receive(engine, queue, { signal: leaving.signal }).catch(() => [])
        const sent = engine.queues.send(queue, queued(`round ${round}`))
        if (round % 3 === 1) await pause(round % 5)
        if (round % 3 === 2) await sent
        leaving.abort(new Error('gone'))
        await sent
        const taken = await within(waiting, 'the aborted receive to end')
        const [delivery] = taken.length > 0 ? taken : [await receiveOne(engine, queue)]
        assert.ok(delivery)
        assert.equal(text(delivery.message), `round ${round}`)
        assert.equal(delivery.message.receiveCount, 1, 'an aborted receive is not counted')
        assert.equal((await engine.queues.ack([delivery.receipt], CONSUMER)).settled, 1)
      }
      await assertNothingDue(engine, queue)
    },
  ),

  contractCase('queues - aborting one waiting receive leaves the others in line', async ({ engine, channel }) => {
    const queue = channel('abort-one')
    await engine.channels.create('queues', queue)
    const leaving = new AbortController()
    const reason = new Error('left the line')
    const first = receive(engine, queue, { signal: leaving.signal })
    await pause(20)
    const second = receiveOne(engine, queue)
    await pause(20)
    leaving.abort(reason)
    await rejectsBecause(reason, first)
    await engine.queues.send(queue, queued('for the second'))
    assert.equal(text((await second).message), 'for the second')
  }),
]
