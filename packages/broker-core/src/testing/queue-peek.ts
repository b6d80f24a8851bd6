import assert from 'node:assert/strict'

import { contractCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { CONSUMER, numbered, queued, receiveOne, sendAll, text, texts } from './messages.ts'
import { eventually, pause } from './waiting.ts'

function starts(bodies: readonly string[]): string[] {
  return bodies.map((body) => body.slice(0, 2))
}

/** Cases for peek, which does not change the queue. */
export const queuePeekCases: readonly ContractCase[] = [
  contractCase('queues - peek shows the next messages and changes nothing', async ({ engine, channel }) => {
    const queue = channel('peek')
    await engine.queues.send(queue, queued('first', { metadata: 'm', tags: { t: '1' }, id: 'the-id' }))
    await engine.queues.send(queue, queued('second'))
    for (let again = 0; again < 3; again += 1) {
      const shown = await engine.queues.peek(queue, { maxMessages: 10 })
      assert.deepEqual(texts(shown), ['first', 'second'])
      assert.deepEqual(
        shown.map(({ sequence }) => sequence),
        [1, 2],
      )
      const [message] = shown
      assert.ok(message)
      assert.equal(message.receiveCount, 0)
      assert.equal(message.id, 'the-id')
      assert.equal(message.metadata, 'm')
      assert.deepEqual({ ...message.tags }, { t: '1' })
      assert.equal(message.channel, queue)
    }
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'first')
    assert.equal(message.receiveCount, 1, 'a peek does not count as a receive')
  }),

  contractCase('queues - peek shows no more than maxMessages, and about maxBytes', async ({ engine, channel }) => {
    const queue = channel('peek-max')
    await engine.queues.sendBatch(
      queue,
      numbered(5).map((body) => queued(body.padEnd(1_000, '.'))),
    )
    assert.deepEqual(starts(texts(await engine.queues.peek(queue, { maxMessages: 3 }))), numbered(3))
    assert.deepEqual(starts(texts(await engine.queues.peek(queue, { maxMessages: 5, maxBytes: 10 }))), ['m1'])
    const { length } = await engine.queues.peek(queue, { maxMessages: 5, maxBytes: 2_500 })
    assert.ok(length === 2 || length === 3, `about 2,500 bytes, not ${length} messages`)
  }),

  contractCase('queues - peek from a sequence shows that message and later ones', async ({ engine, channel }) => {
    const queue = channel('peek-from')
    await sendAll(engine, queue, ['a', 'b', 'c', 'd'])
    const [, b, , d] = await engine.queues.peek(queue, { maxMessages: 10 })
    assert.ok(b && d)
    const from = (fromSequence: number, maxMessages: number): Promise<string[]> =>
      engine.queues.peek(queue, { maxMessages, fromSequence }).then(texts)
    assert.deepEqual(await from(b.sequence, 2), ['b', 'c'])
    assert.deepEqual(await from(b.sequence, 10), ['b', 'c', 'd'])
    assert.deepEqual(await from(d.sequence, 10), ['d'])
    assert.deepEqual(await from(d.sequence + 1, 10), [])
    assert.deepEqual(await from(1, 1), ['a'])
  }),

  contractCase('queues - peek of a queue that does not exist shows no messages', async ({ engine, channel }) => {
    const queue = channel('peek-missing')
    assert.deepEqual(await engine.queues.peek(queue, { maxMessages: 10 }), [])
    assert.equal(await engine.channels.info('queues', queue), undefined)
  }),

  contractCase('queues - peek shows neither delayed nor expired messages', async ({ engine, channel }) => {
    const queue = channel('peek-due')
    await engine.queues.send(queue, queued('delayed', { delayMs: 60_000 }))
    await engine.queues.send(queue, queued('expired', { expirationMs: 60 }))
    await engine.queues.send(queue, queued('due'))
    await pause(150)
    assert.deepEqual(texts(await engine.queues.peek(queue, { maxMessages: 10 })), ['due'])
  }),

  contractCase('queues - peek shows the receive count of a redelivered message', async ({ engine, channel }) => {
    const queue = channel('peek-count')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.nack([receipt], CONSUMER)
    await eventually(async () => {
      const [message] = await engine.queues.peek(queue, { maxMessages: 1 })
      assert.ok(message, 'the message is available again')
      assert.equal(message.receiveCount, 1)
    })
  }),

  contractCase('queues - peek does not show acked messages', async ({ engine, channel }) => {
    const queue = channel('peek-acked')
    await sendAll(engine, queue, ['x', 'y'])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.ack([receipt], CONSUMER)
    await eventually(async () => {
      assert.deepEqual(texts(await engine.queues.peek(queue, { maxMessages: 10 })), ['y'])
    })
  }),
]
