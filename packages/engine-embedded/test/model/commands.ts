import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

import type { SettleResult } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import * as fc from 'fast-check'

import type { ModelLease, QueueModel } from './queue-model.ts'
import type { HeldLease, Session } from './session.ts'

/** Two queues and the one that dead letters of both go to. */
const QUEUES = ['one', 'two', 'dead'] as const

type Command = fc.AsyncCommand<QueueModel, Session>

const DAY_MS = 86_400_000

/** A command: whether it makes sense now, what it does, and its name in a counterexample. */
function command(name: string, run: Command['run'], check: Command['check'] = () => true): Command {
  return {
    check,
    async run(model, session) {
      const done = async (): Promise<void> => {
        await run(model, session)
        await session.settle(model, QUEUES)
      }
      const late = pause(15_000, `${name} does not end`, { ref: false })
      assert.equal(await Promise.race([done(), late]), undefined)
    },
    toString: () => name,
  }
}

const queue = fc.constantFrom(...QUEUES)
const client = fc.nat({ max: 1 })

const message = fc.record({
  // Halves, so that no time is met exactly by a clock that moves in whole seconds.
  delayMs: fc.constantFrom(0, 0, 0, 500, 3_500, 7_500),
  expirationMs: fc.constantFrom(0, 0, 0, 2_500, 6_500, 60_500),
  maxReceiveCount: fc.constantFrom(0, 1, 2, 3),
  deadLetterQueue: fc.constantFrom('', 'dead', 'dead'),
  deduplicationId: fc.constantFrom(undefined, undefined, undefined, 'a', 'b'),
})

let messages = 0

const send = fc
  .tuple(fc.constantFrom('one', 'two'), fc.array(message, { minLength: 1, maxLength: 3 }))
  .map(([queue, batch]): Command =>
    command(`send(${queue}, ${fc.stringify(batch)})`, async (model, session) => {
      const sends = batch.map((one) => {
        messages += 1
        return { ...one, id: `message-${messages}` }
      })
      const outgoing = sends.map(({ deduplicationId, deadLetterQueue, ...one }) => ({
        ...one,
        clientId: 'producer',
        body: encodeText(one.id),
        metadata: '',
        tags: {},
        deadLetterQueue: session.channel(deadLetterQueue),
        ...(deduplicationId === undefined ? {} : { deduplicationId }),
      }))
      const expected = model.send(queue, sends)
      const [first] = outgoing
      const results =
        outgoing.length === 1 && first
          ? [await session.engine.queues.send(session.channel(queue), first)]
          : await session.engine.queues.sendBatch(session.channel(queue), outgoing)
      assert.deepEqual(
        results.map(({ id, sequence, duplicate }) => ({ id, sequence, duplicate })),
        expected,
      )
    }),
  )

const receive = fc.tuple(queue, fc.integer({ min: 1, max: 4 }), client).map(([queue, maxMessages, client]): Command =>
  command(`receive(${queue}, ${maxMessages})`, async (model, session) => {
    const clientId = session.clientOf(client)
    const expected = model.receive(queue, maxMessages)
    session.delivered(expected, await session.receive(queue, maxMessages, clientId), clientId)
  }),
)

const wait = queue.map((queue): Command =>
  command(`wait(${queue})`, async (_, session) => session.wait(queue, session.clientOf(0))),
)

const abort = fc.nat().map((n): Command =>
  command(`abort(${n})`, async (_, session) => {
    if (session.waiting.length === 0) return
    const [pending] = session.waiting.splice(n % session.waiting.length, 1)
    pending?.abort.abort(new Error('gone'))
    assert.equal(await pending?.outcome, 'ended')
  }),
)

type Settle = (session: Session, receipts: readonly string[], clientId: string) => Promise<SettleResult>

/** Settles some of the deliveries so far, live and stale ones mixed, in the name of one client. */
function settling(name: string, settle: Settle, apply: (model: QueueModel, lease: ModelLease) => void) {
  return fc.tuple(fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), client).map(([picks, client]): Command =>
    command(`${name}(${picks.join(', ')}; client ${client})`, async (model, session) => {
      if (session.leases.length === 0) return
      const clientId = session.clientOf(client)
      const newest = session.leases.toReversed()
      const picked = [...new Set(picks.map((n) => newest[n % Math.min(newest.length, 8)]))].filter(
        (lease): lease is HeldLease => lease !== undefined,
      )
      // One queue at a time: in which order a dead-letter queue gets messages of several queues is nobody’s business.
      const leases = picked.filter((lease) => lease.model.queue === picked[0]?.model.queue)
      const good = leases.filter((lease) => session.isLive(model, lease) && lease.clientId === clientId)
      const repeated = leases.filter((lease) => lease.endedBy === name && lease.clientId === clientId)
      const done = [...good, ...repeated]
      const lost = leases.filter((lease) => !done.includes(lease)).map(({ receipt }) => receipt)
      const settlement = await settle(
        session,
        leases.map(({ receipt }) => receipt),
        clientId,
      )
      assert.deepEqual({ settled: settlement.settled, lost: [...settlement.lost] }, { settled: done.length, lost })
      for (const lease of good) {
        apply(model, lease.model)
        if (name !== 'extend') lease.endedBy = name
      }
    }),
  )
}

const ack = settling(
  'ack',
  (session, receipts, clientId) => session.engine.queues.ack(receipts, clientId),
  (model, lease) => model.ack(lease),
)

const nack = settling(
  'nack',
  (session, receipts, clientId) => session.engine.queues.nack(receipts, clientId),
  (model, lease) => model.release(lease),
)

const nackLater = settling(
  'nack',
  (session, receipts, clientId) => session.engine.queues.nack(receipts, clientId, { delayMs: 1_500 }),
  (model, lease) => model.release(lease, 1_500),
)

const extend = settling(
  'extend',
  (session, receipts, clientId) => session.engine.queues.extend(receipts, clientId, 600_000),
  () => {},
)

const lapse = fc.nat().map((n): Command =>
  command(`lapse(${n})`, async (model, session) => {
    const held = session.leases.filter((lease) => session.isLive(model, lease))
    const lease = held[n % Math.max(held.length, 1)]
    if (!lease) return
    await session.engine.queues.extend([lease.receipt], lease.clientId, 1)
    await pause(5)
    model.release(lease.model)
    const { settled, lost } = await session.engine.queues.ack([lease.receipt], lease.clientId)
    assert.deepEqual([settled, ...lost], [0, lease.receipt])
  }),
)

const peek = fc.tuple(queue, fc.integer({ min: 1, max: 5 })).map(([queue, maxMessages]): Command =>
  command(`peek(${queue}, ${maxMessages})`, async (model, session) => {
    const shown = await session.engine.queues.peek(session.channel(queue), { maxMessages })
    assert.deepEqual(
      shown.map(({ id, sequence, receiveCount }) => [id, sequence, receiveCount]),
      model
        .available(queue)
        .slice(0, maxMessages)
        .map(({ id, sequence, receiveCount }) => [id, sequence, receiveCount]),
    )
  }),
)

const purge = queue.map((queue): Command =>
  command(`purge(${queue})`, async (model, session) => {
    const { least, most } = model.purge(queue)
    const removed = await session.engine.queues.purge(session.channel(queue))
    assert.ok(removed >= least && removed <= most, `${removed} were removed, not ${least} to ${most}`)
  }),
)

const remove = queue.map((queue): Command =>
  command(`delete(${queue})`, async (model, session) => {
    assert.equal(await session.engine.channels.delete('queues', session.channel(queue)), model.delete(queue))
  }),
)

const advance = fc.constantFrom(1_000, 1_000, 3_000, 8_000, 150_000).map((milliseconds): Command =>
  command(`advance(${milliseconds})`, async (model, session) => {
    // Which of several messages that become due at once a waiting receiver gets is left open.
    await session.endWaits((queue) => model.maturing(queue, milliseconds + 1) > 1)
    await session.advance(model, milliseconds)
  }),
)

const restart = fc.constant<Command>(command('restart', (model, session) => session.restart(model)))

const ordinary = [
  send,
  send,
  receive,
  receive,
  receive,
  wait,
  abort,
  ack,
  nack,
  nack,
  nackLater,
  extend,
  lapse,
  peek,
  purge,
  remove,
  advance,
  advance,
]

/** Restarts are rare: each costs as much as a hundred other commands. */
export const commands = [...ordinary, ...ordinary, ...ordinary, restart]

/** Takes out everything that is left, and compares it. */
export async function drain(model: QueueModel, session: Session): Promise<void> {
  await session.endWaits(() => true)
  await session.advance(model, DAY_MS)
  for (const queue of QUEUES) {
    const expected = model.receive(queue, 1_000)
    session.delivered(expected, await session.receive(queue, 1_000, 'drain'), 'drain')
  }
  for (const lease of session.leases) {
    const live = session.isLive(model, lease)
    const { settled } = await session.engine.queues.ack([lease.receipt], lease.clientId)
    assert.equal(settled, live || lease.endedBy === 'ack' ? 1 : 0)
    if (live) model.ack(lease.model)
  }
  await session.settle(model, QUEUES)
  for (const queue of QUEUES) assert.deepEqual(await session.receive(queue, 1, 'drain'), [])
}
