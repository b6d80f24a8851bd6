import assert from 'node:assert/strict'

import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, Inbox, isolatedCase, rejectsBecause, within } from './contract-case.ts'
import { CONSUMER, numbered, receive, receiveMany, receiveOne, sendAll, text } from './messages.ts'

/** Cases for the parts of the port that the limits of consumers need. */
export const gateCases: readonly ContractCase[] = [
  contractCase('gate - an engine counts the leased messages of a queue', async ({ engine, channel }) => {
    const queue = channel('leased')
    assert.equal(engine.queues.leased(queue), 0)
    await sendAll(engine, queue, numbered(4))
    const [first, second, third] = await receiveMany(engine, queue, 3)
    assert.ok(first && second && third)
    assert.equal(engine.queues.leased(queue), 3, 'messages count as leased when the receive returns')
    await engine.queues.ack([first.receipt], CONSUMER)
    assert.equal(engine.queues.leased(queue), 2)
    await engine.queues.nack([second.receipt], CONSUMER)
    assert.equal(engine.queues.leased(queue), 1)
    await engine.queues.extend([third.receipt], CONSUMER, 1)
    await eventually(() => assert.equal(engine.queues.leased(queue), 0))
  }),

  contractCase('gate - an engine reports each lease that ends', async ({ engine, channel }) => {
    const queue = channel('ends')
    const ended = new Inbox<number>()
    engine.queues.listen({
      leaseEnded: (name) => {
        if (name === queue) ended.push(engine.queues.leased(queue))
      },
      closed: () => {},
    })
    const last = (count: number) => ended.until((counts) => counts.at(-1) === count, `a report of ${count} leases`)
    await sendAll(engine, queue, numbered(4))
    const [first, second, third] = await receiveMany(engine, queue, 4)
    assert.ok(first && second && third)
    assert.deepEqual(ended.items, [], 'leased messages are no end')
    await engine.queues.ack([first.receipt], CONSUMER)
    await last(3)
    await engine.queues.nack([second.receipt], CONSUMER)
    await last(2)
    await engine.queues.extend([third.receipt], CONSUMER, 1)
    await last(1)
    await engine.channels.delete('queues', queue)
    await last(0)
  }),

  contractCase(
    'gate - an interrupted receiver returns empty, and gets no later message',
    async ({ engine, channel }) => {
      const [queue, other, missing] = [channel('interrupted'), channel('other'), channel('missing')]
      for (const name of [queue, other]) await engine.channels.create('queues', name)
      const receivers = [queue, queue, missing].map((name) => receive(engine, name))
      const waiting = receive(engine, other)
      engine.queues.interrupt((name) => name === queue || name === missing)
      assert.deepEqual(await within(Promise.all(receivers), 'the end of the waits'), [[], [], []])
      await sendAll(engine, queue, ['later'])
      await sendAll(engine, other, ['x'])
      assert.equal(text((await waiting)[0]?.message ?? assert.fail('the other receiver waits on')), 'x')
      const { message } = await receiveOne(engine, queue)
      assert.deepEqual([text(message), message.receiveCount], ['later', 1])
    },
  ),

  contractCase(
    'gate - a receiver that is interrupted and then aborted has ended before',
    async ({ engine, channel }) => {
      const queue = channel('aborted')
      await engine.channels.create('queues', queue)
      const [first, second] = [new AbortController(), new AbortController()]
      const interrupted = receive(engine, queue, { signal: first.signal })
      engine.queues.interrupt((name) => name === queue)
      first.abort(new Error('too late'))
      assert.deepEqual(await within(interrupted, 'the end of the wait'), [])
      const aborted = receive(engine, queue, { signal: second.signal })
      second.abort('the reason')
      await rejectsBecause('the reason', aborted)
    },
  ),

  isolatedCase('gate - an engine reports that it closes', async ({ engine }) => {
    const closed = Promise.withResolvers<void>()
    engine.queues.listen({ leaseEnded: () => {}, closed: () => closed.resolve() })
    await engine.close()
    await within(closed.promise, 'the report of the end')
  }),

  contractCase('capabilities - exactConsumerLimits: the engine declares whose leases it counts', async ({ engine }) => {
    // One node has all leases; the tests of a cluster count those of several.
    assert.equal(typeof engine.capabilities.exactConsumerLimits, 'boolean')
    assert.equal(engine.capabilities.exactConsumerLimits, engine.otherNodes === undefined)
  }),
]
