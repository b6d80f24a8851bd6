import assert from 'node:assert/strict'

import type { QueueSend } from '../engine/queue-engine.ts'
import type { ContractCase } from './contract-case.ts'
import { eventually, isolatedCase, rejectsWith } from './contract-case.ts'
import {
  assertNothingDue,
  CONSUMER,
  numbered,
  outgoing,
  queued,
  receiveMany,
  receiveOne,
  reply,
  sendAll,
  storedEvent,
  texts,
} from './messages.ts'

function batch(count: number): QueueSend[] {
  return numbered(count).map((body) => queued(body))
}

const KIB = 'x'.repeat(1024)

/** Cases for calls that exceed a limit: the engine refuses them with the right code and changes nothing. */
export const limitCases: readonly ContractCase[] = [
  isolatedCase(
    'C4 - limits: the engine declares the limits it was opened with',
    async ({ engine }) => {
      assert.equal(engine.limits.maxMessageBytes, 300_000)
      assert.equal(engine.limits.maxChannels, 50)
    },
    { maxMessageBytes: 300_000, maxChannels: 50 },
  ),

  isolatedCase(
    'C4 - limits: a queue accepts its maximum of messages, including leased and delayed ones',
    async ({ engine, channel }) => {
      const [queue, other] = [channel('messages'), channel('other')]
      await engine.queues.send(queue, queued('leased'))
      await receiveOne(engine, queue)
      await engine.queues.send(queue, queued('delayed', { delayMs: 60_000 }))
      await engine.queues.send(queue, queued('waiting'))
      const error = await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('too many')))
      assert.equal(error.details['channel'], queue)
      assert.equal(error.details['limit'], 3)
      await engine.queues.send(other, queued('each queue has its own'))
      const { message } = await receiveOne(engine, queue)
      assert.equal(message.sequence, 3)
      await assertNothingDue(engine, queue)
    },
    { queueMaxMessages: 3 },
  ),

  isolatedCase(
    'C4 - limits: a refused send leaves no gap, and an ack or a purge frees capacity',
    async ({ engine, channel }) => {
      const queue = channel('room')
      await sendAll(engine, queue, ['x', 'y'])
      await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('too many')))
      const { receipt } = await receiveOne(engine, queue)
      await engine.queues.ack([receipt], CONSUMER)
      assert.equal((await engine.queues.send(queue, queued('z'))).sequence, 3)
      await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('too many')))
      await engine.queues.purge(queue)
      assert.equal((await engine.queues.send(queue, queued('again'))).sequence, 4)
    },
    { queueMaxMessages: 2 },
  ),

  isolatedCase(
    'C4 - limits: a nack needs no capacity',
    async ({ engine, channel }) => {
      const queue = channel('nack')
      await sendAll(engine, queue, ['x', 'y'])
      const { receipt } = await receiveOne(engine, queue)
      await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('too many')))
      assert.equal((await engine.queues.nack([receipt], CONSUMER)).settled, 1)
      const deliveries = await receiveMany(engine, queue, 2)
      assert.deepEqual(texts(deliveries.map(({ message }) => message)), ['x', 'y'])
    },
    { queueMaxMessages: 2 },
  ),

  isolatedCase(
    'C4 - limits: a batch that does not fit is refused as a whole',
    async ({ engine, channel }) => {
      const queue = channel('batch')
      await sendAll(engine, queue, ['x', 'y'])
      await rejectsWith('QUEUE_FULL', engine.queues.sendBatch(queue, batch(3)))
      assert.equal((await engine.channels.info('queues', queue))?.queue?.waiting, 2)
      const results = await engine.queues.sendBatch(queue, batch(2))
      assert.deepEqual(
        results.map(({ sequence }) => sequence),
        [3, 4],
      )
      await rejectsWith('QUEUE_FULL', engine.queues.sendBatch(queue, batch(1)))
    },
    { queueMaxMessages: 4 },
  ),

  isolatedCase(
    'C4 - limits: as many concurrent sends succeed as fit',
    async ({ engine, channel }) => {
      const queue = channel('concurrent')
      const outcomes = await Promise.allSettled(numbered(25).map((body) => engine.queues.send(queue, queued(body))))
      const sequences = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.sequence] : []))
      assert.deepEqual(
        sequences.toSorted((a, b) => a - b),
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
      )
      assert.equal((await receiveMany(engine, queue, 10)).length, 10)
      await assertNothingDue(engine, queue)
    },
    { queueMaxMessages: 10 },
  ),

  isolatedCase(
    'C4 - limits: a queue accepts its maximum of bytes',
    async ({ engine, channel }) => {
      const queue = channel('bytes')
      let accepted = 0
      const error = await rejectsWith(
        'QUEUE_FULL',
        (async () => {
          for (; accepted < 20; accepted += 1) await engine.queues.send(queue, queued(KIB))
        })(),
      )
      // Engines may also count tags and headers in addition to the body.
      assert.ok(accepted >= 4 && accepted <= 10, `10 KiB hold 4 to 10 bodies of 1 KiB, not ${accepted}`)
      assert.equal(error.details['channel'], queue)
      assert.equal(error.details['limit'], 10 * 1024)
      assert.match(error.message, /QUEUE_MAX_BYTES/)
      const deliveries = await receiveMany(engine, queue, accepted)
      for (const { receipt } of deliveries) await engine.queues.ack([receipt], CONSUMER)
      await engine.queues.send(queue, queued(KIB))
    },
    { queueMaxMessages: 100, queueMaxBytes: 10 * 1024 },
  ),

  isolatedCase(
    'C4 - limits: a batch over the maximum of bytes is refused as a whole',
    async ({ engine, channel }) => {
      const queue = channel('batch-bytes')
      await engine.queues.send(queue, queued('x'))
      await rejectsWith(
        'QUEUE_FULL',
        engine.queues.sendBatch(
          queue,
          Array.from({ length: 11 }, () => queued(KIB)),
        ),
      )
      assert.equal((await engine.channels.info('queues', queue))?.queue?.waiting, 1)
      assert.equal((await engine.queues.send(queue, queued('y'))).sequence, 2)
    },
    { queueMaxBytes: 10 * 1024 },
  ),

  isolatedCase(
    'C4 - limits: no call creates a channel over the limit',
    async ({ engine, channel }) => {
      const [queue, store, name] = [channel('queue'), channel('log'), channel('topic')]
      await engine.queues.send(queue, queued('x'))
      await engine.eventsStore.append(store, storedEvent('x'))
      await engine.events.publish(name, outgoing('x'))
      const refused = [
        engine.queues.send(channel('more'), queued('x')),
        engine.queues.sendBatch(channel('more'), [queued('x')]),
        engine.eventsStore.append(channel('more'), storedEvent('x')),
        engine.events.publish(channel('more'), outgoing('x')),
        engine.requests.request('queries', channel('more'), outgoing('x'), { timeoutMs: 200 }),
        engine.events.subscribe(channel('more'), {}, () => {}),
        engine.eventsStore.subscribe(channel('more'), { from: 'first' }, {}, () => {}),
        engine.requests.serve('queries', channel('more'), {}, async () => reply('x')),
        engine.channels.create('commands', channel('more')),
        engine.channels.create('queues', store),
      ]
      for (const error of await Promise.all(refused.map((call) => rejectsWith('CHANNEL_LIMIT', call)))) {
        assert.equal(error.details['limit'], 3)
      }
      assert.equal((await engine.channels.list()).length, 3)
      await engine.events.subscribe(`${name}.>`, {}, () => {})
      await engine.events.subscribe(name, {}, () => {})
    },
    { maxChannels: 3 },
  ),

  isolatedCase(
    'C4 - limits: at the channel limit existing channels work, and deleting one frees capacity',
    async ({ engine, channel }) => {
      const [queue, store] = [channel('queue'), channel('log')]
      await engine.queues.send(queue, queued('x'))
      await engine.eventsStore.append(store, storedEvent('x'))
      await rejectsWith('CHANNEL_LIMIT', engine.queues.send(channel('more'), queued('x')))
      assert.equal((await engine.queues.send(queue, queued('y'))).sequence, 2)
      assert.equal((await engine.eventsStore.append(store, storedEvent('y'))).sequence, 2)
      assert.equal(await engine.channels.create('queues', queue), false)
      assert.equal(await engine.channels.delete('events_store', store), true)
      await eventually(async () => {
        await engine.queues.send(channel('now'), queued('x'))
      })
      await rejectsWith('CHANNEL_LIMIT', engine.queues.send(channel('more'), queued('x')))
    },
    { maxChannels: 2 },
  ),

  isolatedCase(
    'C4 - limits: the broker’s own channels do not count',
    async ({ engine, channel }) => {
      await engine.queues.send(channel('one'), queued('x'))
      for (const label of ['a', 'b', 'c']) {
        const own = `_AGENTS_.${channel(label)}`
        await engine.eventsStore.append(own, storedEvent('x'))
        await engine.events.publish(own, outgoing('x'))
        await engine.queues.send(own, queued('x'))
        assert.equal(await engine.channels.create('queries', own), true)
      }
      await engine.queues.send(channel('two'), queued('x'))
      await rejectsWith('CHANNEL_LIMIT', engine.queues.send(channel('three'), queued('x')))
      await engine.eventsStore.append(`_AGENTS_.${channel('d')}`, storedEvent('x'))
    },
    { maxChannels: 2 },
  ),

  isolatedCase(
    'C4 - limits: as many concurrent first uses create a channel as fit',
    async ({ engine, channel }) => {
      const outcomes = await Promise.allSettled(
        numbered(12).map((label) => engine.queues.send(channel(label), queued('x'))),
      )
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 5)
      assert.equal((await engine.channels.list('queues')).length, 5)
    },
    { maxChannels: 5 },
  ),

  isolatedCase(
    'C4 - limits: channels count after a restart',
    async (context) => {
      const queue = context.channel('one')
      await context.engine.queues.send(queue, queued('x'))
      await context.engine.eventsStore.append(context.channel('two'), storedEvent('x'))
      await context.restart()
      await rejectsWith('CHANNEL_LIMIT', context.engine.queues.send(context.channel('more'), queued('x')))
      assert.equal((await context.engine.queues.send(queue, queued('y'))).sequence, 2)
    },
    { maxChannels: 2 },
  ),
]
