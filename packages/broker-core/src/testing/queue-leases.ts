import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, pause, rejectsWith } from './contract-case.ts'
import {
  assertNothingDue,
  CONSUMER,
  LONG_LEASE_MS,
  numbered,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'

/** A lease that expires while a case waits. */
const SHORT_LEASE_MS = 200

const SOMEBODY_ELSE = 'somebody-else'

/** Asserts the number of messages that the queue contains, leased or not. */
async function assertHolds(engine: Engine, queue: string, count: number): Promise<void> {
  await eventually(async () => {
    const state = (await engine.channels.info('queues', queue))?.queue
    assert.ok(state)
    assert.equal(state.waiting + state.delayed + state.inFlight, count)
  })
}

const DONE = { settled: 1, lost: [] }

/** Cases for ack, nack, extend and expiring leases. */
export const queueLeaseCases: readonly ContractCase[] = [
  contractCase('queues - an acked message is removed permanently', async ({ engine, channel }) => {
    const queue = channel('ack')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue, { leaseMs: 3_000 })
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 1, lost: [] })
    assert.deepEqual(await receive(engine, queue, { waitMs: 3_200 }), [])
    await assertHolds(engine, queue, 0)
  }),

  contractCase('queues - many messages of several queues are acked in one call', async ({ engine, channel }) => {
    const [one, two] = [channel('ack-one'), channel('ack-two')]
    await sendAll(engine, one, numbered(10))
    await sendAll(engine, two, numbered(5))
    const deliveries = [...(await receiveMany(engine, one, 10)), ...(await receiveMany(engine, two, 5))]
    const receipts = deliveries.map(({ receipt }) => receipt)
    assert.equal(new Set(receipts).size, 15, 'each delivery has its own receipt')
    assert.deepEqual(await engine.queues.ack(receipts, CONSUMER), { settled: 15, lost: [] })
    await assertHolds(engine, one, 0)
    await assertHolds(engine, two, 0)
  }),

  contractCase('queues - valid receipts among lost ones are settled', async ({ engine, channel }) => {
    const queue = channel('ack-mixed')
    await sendAll(engine, queue, ['x', 'y', 'z'])
    const [x, y, z] = (await receiveMany(engine, queue, 3)).map(({ receipt }) => receipt)
    assert.ok(x && y && z)
    await engine.queues.ack([y], CONSUMER)
    const { settled, lost } = await engine.queues.ack([x, y, 'never given', z], CONSUMER)
    assert.equal(settled, 3)
    assert.deepEqual(lost, ['never given'])
    await assertHolds(engine, queue, 0)
  }),

  contractCase('queues - no receipts settle nothing', async ({ engine }) => {
    assert.deepEqual(await engine.queues.ack([], CONSUMER), { settled: 0, lost: [] })
    assert.deepEqual(await engine.queues.nack([], CONSUMER), { settled: 0, lost: [] })
    assert.deepEqual(await engine.queues.extend([], CONSUMER, LONG_LEASE_MS), { settled: 0, lost: [] })
  }),

  contractCase('queues - a receipt that appears twice in one call counts once', async ({ engine, channel }) => {
    const queue = channel('twice-in-one')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    for (const settle of [
      () => engine.queues.ack(['lost', 'lost'], CONSUMER),
      () => engine.queues.nack(['lost', 'lost'], CONSUMER),
      () => engine.queues.extend(['lost', 'lost'], CONSUMER, LONG_LEASE_MS),
    ]) {
      const { settled, lost } = await settle()
      assert.equal(settled, 0)
      assert.deepEqual(new Set(lost), new Set(['lost']))
    }
    assert.equal((await engine.queues.ack([receipt, receipt], CONSUMER)).settled, 1)
    await assertHolds(engine, queue, 0)
  }),

  contractCase('queues - unknown receipts are lost', async ({ engine, channel }) => {
    const queue = channel('garbled')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    const garbled = [
      '',
      ' ',
      '0',
      'garbled',
      '../../etc/passwd',
      '\u0000',
      '🙂',
      `${receipt}x`,
      `x${receipt}`,
      receipt.slice(0, -1),
      receipt.toUpperCase() === receipt ? receipt.toLowerCase() : receipt.toUpperCase(),
      'x'.repeat(10_000),
    ].filter((one) => one !== receipt)
    for (const settle of [
      () => engine.queues.ack(garbled, CONSUMER),
      () => engine.queues.nack(garbled, CONSUMER),
      () => engine.queues.extend(garbled, CONSUMER, 1),
    ]) {
      const { settled, lost } = await settle()
      assert.equal(settled, 0)
      assert.deepEqual(lost.toSorted(), garbled.toSorted())
    }
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 1, lost: [] })
  }),

  contractCase('queues - only the receiver of a message may settle it', async ({ engine, channel }) => {
    const queue = channel('foreign')
    await sendAll(engine, queue, ['mine'])
    const { receipt } = await receiveOne(engine, queue)
    const nothing = { settled: 0, lost: [receipt] }
    assert.deepEqual(await engine.queues.ack([receipt], SOMEBODY_ELSE), nothing)
    assert.deepEqual(await engine.queues.nack([receipt], SOMEBODY_ELSE), nothing)
    assert.deepEqual(await engine.queues.extend([receipt], SOMEBODY_ELSE, 1), nothing)
    await pause(50)
    await assertNothingDue(engine, queue)
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 1, lost: [] })
  }),

  contractCase('queues - a leased message is not delivered again', async ({ engine, channel }) => {
    const queue = channel('leased')
    await sendAll(engine, queue, ['x'])
    await receiveOne(engine, queue)
    assert.deepEqual(await receive(engine, queue, { waitMs: 150, clientId: SOMEBODY_ELSE }), [])
    assert.deepEqual(await receive(engine, queue, { waitMs: 0 }), [])
  }),

  contractCase('queues - a nacked message goes to a waiting receiver at once', async ({ engine, channel }) => {
    const queue = channel('nack')
    await sendAll(engine, queue, ['x'])
    const { receipt, message } = await receiveOne(engine, queue)
    const waiting = receiveOne(engine, queue, { clientId: SOMEBODY_ELSE })
    await pause(30)
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER), { settled: 1, lost: [] })
    const again = await waiting
    assert.equal(again.message.id, message.id)
    assert.equal(again.message.sequence, message.sequence)
    assert.equal(again.message.receiveCount, 2)
    assert.notEqual(again.receipt, receipt)
  }),

  contractCase('C2 - queues: a nacked message comes before messages never delivered', async ({ engine, channel }) => {
    const queue = channel('nack-before')
    await sendAll(engine, queue, ['x', 'y', 'z'])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.nack([receipt], CONSUMER)
    const deliveries = await receiveMany(engine, queue, 3)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)), ['x', 'y', 'z'])
  }),

  contractCase('queues - a receipt is lost after its nack', async ({ engine, channel }) => {
    const queue = channel('nack-stale')
    await sendAll(engine, queue, ['x'])
    const first = await receiveOne(engine, queue)
    await engine.queues.nack([first.receipt], CONSUMER)
    const second = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.ack([first.receipt], CONSUMER), { settled: 0, lost: [first.receipt] })
    assert.deepEqual(await engine.queues.ack([second.receipt], CONSUMER), { settled: 1, lost: [] })
  }),

  contractCase('queues - a message with an expired lease goes to a waiting receiver', async ({ engine, channel }) => {
    const queue = channel('lapse')
    await sendAll(engine, queue, ['x'])
    const started = performance.now()
    const first = await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
    const second = await receiveOne(engine, queue, { clientId: SOMEBODY_ELSE })
    assert.ok(performance.now() - started >= SHORT_LEASE_MS - 50, 'not before the lease ended')
    assert.equal(second.message.id, first.message.id)
    assert.equal(second.message.receiveCount, 2)
  }),

  contractCase(
    'C2 - queues: a message with an expired lease comes before messages never delivered',
    async ({ engine, channel }) => {
      const queue = channel('lapse-place')
      await sendAll(engine, queue, ['x', 'y'])
      await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
      await eventually(async () => {
        assert.equal((await engine.channels.info('queues', queue))?.queue?.waiting, 2)
      })
      const deliveries = await receiveMany(engine, queue, 2)
      assert.deepEqual(texts(deliveries.map(({ message }) => message)), ['x', 'y'])
    },
  ),

  contractCase(
    'queues - a settlement after the lease expired is lost and changes nothing',
    async ({ engine, channel }) => {
      const queue = channel('late')
      await sendAll(engine, queue, ['x'])
      const late = await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
      const holder = await receiveOne(engine, queue)
      const nothing = { settled: 0, lost: [late.receipt] }
      assert.deepEqual(await engine.queues.ack([late.receipt], CONSUMER), nothing)
      assert.deepEqual(await engine.queues.nack([late.receipt], CONSUMER), nothing)
      assert.deepEqual(await engine.queues.extend([late.receipt], CONSUMER, 1), nothing)
      await pause(50)
      await assertNothingDue(engine, queue)
      assert.deepEqual(await engine.queues.ack([holder.receipt], CONSUMER), { settled: 1, lost: [] })
    },
  ),

  contractCase(
    'queues - an ack after the lease expired is lost, even without another receiver',
    async ({ engine, channel }) => {
      const queue = channel('late-alone')
      await sendAll(engine, queue, ['x'])
      const { receipt } = await receiveOne(engine, queue, { leaseMs: SHORT_LEASE_MS })
      await pause(SHORT_LEASE_MS + 150)
      assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 0, lost: [receipt] })
      assert.equal((await receiveOne(engine, queue)).message.receiveCount, 2)
    },
  ),

  contractCase('queues - extend sets the end of a lease later', async ({ engine, channel }) => {
    const queue = channel('extend')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue, { leaseMs: 3_000 })
    assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, LONG_LEASE_MS), { settled: 1, lost: [] })
    assert.deepEqual(await receive(engine, queue, { waitMs: 3_200 }), [])
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), { settled: 1, lost: [] })
  }),

  contractCase('queues - extend sets the end of a lease earlier, too', async ({ engine, channel }) => {
    const queue = channel('extend-earlier')
    await sendAll(engine, queue, ['x'])
    const first = await receiveOne(engine, queue, { leaseMs: LONG_LEASE_MS })
    assert.deepEqual(await engine.queues.extend([first.receipt], CONSUMER, 100), { settled: 1, lost: [] })
    const second = await receiveOne(engine, queue)
    assert.equal(second.message.receiveCount, 2)
    assert.deepEqual(await engine.queues.ack([first.receipt], CONSUMER), { settled: 0, lost: [first.receipt] })
  }),

  contractCase('queues - an extended lease expires', async ({ engine, channel }) => {
    const queue = channel('extend-ends')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue, { leaseMs: 5_000 })
    await engine.queues.extend([receipt], CONSUMER, 5_000)
    await engine.queues.extend([receipt], CONSUMER, SHORT_LEASE_MS)
    assert.equal((await receiveOne(engine, queue)).message.receiveCount, 2)
  }),

  contractCase('queues - a nack and an expired lease both count as a receive', async ({ engine, channel }) => {
    const queue = channel('counts')
    await sendAll(engine, queue, ['x'])
    for (let count = 1; count <= 4; count += 1) {
      const { receipt, message } = await receiveOne(engine, queue, {
        leaseMs: count % 2 === 0 ? SHORT_LEASE_MS : LONG_LEASE_MS,
      })
      assert.equal(message.receiveCount, count)
      if (count % 2 === 1) await engine.queues.nack([receipt], CONSUMER)
    }
  }),

  contractCase('queues - leases of different durations each expire on time', async ({ engine, channel }) => {
    const queue = channel('lengths')
    await sendAll(engine, queue, ['long', 'middle', 'short'])
    await receiveOne(engine, queue, { leaseMs: LONG_LEASE_MS })
    await receiveOne(engine, queue, { leaseMs: 3_500 })
    await receiveOne(engine, queue, { leaseMs: 200 })
    assert.equal(text((await receiveOne(engine, queue)).message), 'short')
    assert.equal(text((await receiveOne(engine, queue)).message), 'middle')
    await assertNothingDue(engine, queue)
  }),

  // ── A client that repeats a settlement, because it did not get the answer ──

  contractCase('queues - a repeated ack has the result of the first one', async ({ engine, channel }) => {
    const queue = channel('ack-again')
    await sendAll(engine, queue, ['x', 'y'])
    const { receipt } = await receiveOne(engine, queue)
    for (let times = 0; times < 3; times++) assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
    assert.equal(text((await receiveOne(engine, queue)).message), 'y')
  }),

  contractCase('queues - a repeated nack returns the message once', async ({ engine, channel }) => {
    const queue = channel('nack-again')
    await sendAll(engine, queue, ['x'])
    const first = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.nack([first.receipt], CONSUMER), DONE)
    const second = await receiveOne(engine, queue)
    assert.equal(second.message.receiveCount, 2)
    assert.deepEqual(await engine.queues.nack([first.receipt], CONSUMER), DONE)
    await pause(50)
    await assertNothingDue(engine, queue)
    assert.deepEqual(await engine.queues.ack([second.receipt], CONSUMER), DONE)
  }),

  contractCase('queues - a repeated extend sets the end of the lease again', async ({ engine, channel }) => {
    const queue = channel('extend-again')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, LONG_LEASE_MS), DONE)
    assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, LONG_LEASE_MS), DONE)
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
  }),

  contractCase('queues - after an ack the receipt is lost for nack and extend', async ({ engine, channel }) => {
    const queue = channel('ack-then')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
    const nothing = { settled: 0, lost: [receipt] }
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER), nothing)
    assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, LONG_LEASE_MS), nothing)
    await assertNothingDue(engine, queue)
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
  }),

  contractCase('queues - after a nack the receipt is lost for ack and extend', async ({ engine, channel }) => {
    const queue = channel('nack-then')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.nack([receipt], CONSUMER), DONE)
    const nothing = { settled: 0, lost: [receipt] }
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), nothing)
    assert.deepEqual(await engine.queues.extend([receipt], CONSUMER, LONG_LEASE_MS), nothing)
    assert.equal((await receiveOne(engine, queue)).message.receiveCount, 2)
  }),

  contractCase('queues - settlements of one receipt at the same time agree', async ({ engine, channel }) => {
    const queue = channel('at-once')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    const acks = Array.from({ length: 4 }, () => engine.queues.ack([receipt], CONSUMER))
    const nacked = engine.queues.nack([receipt], CONSUMER)
    assert.deepEqual(await Promise.all(acks), [DONE, DONE, DONE, DONE])
    assert.deepEqual(await nacked, { settled: 0, lost: [receipt] })
    await assertNothingDue(engine, queue)
  }),

  contractCase('queues - another client cannot repeat a settlement', async ({ engine, channel }) => {
    const queue = channel('repeat-foreign')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
    assert.deepEqual(await engine.queues.ack([receipt], SOMEBODY_ELSE), { settled: 0, lost: [receipt] })
  }),

  isolatedCase('queues - after a restart no message is called lost that was acked', async (context) => {
    const queue = context.channel('acked-before')
    await sendAll(context.engine, queue, ['x'])
    const { receipt } = await receiveOne(context.engine, queue)
    assert.deepEqual(await context.engine.queues.ack([receipt], CONSUMER), DONE)
    await context.restart()
    const { engine } = context
    if (engine.capabilities.leaseSurvivesNode) assert.deepEqual(await engine.queues.ack([receipt], CONSUMER), DONE)
    else await rejectsWith('ENGINE_UNAVAILABLE', engine.queues.ack([receipt], CONSUMER))
  }),

  contractCase('queues - a settlement is forgotten after the lease', async ({ engine, channel }) => {
    const queue = channel('forgotten')
    await sendAll(engine, queue, ['x', 'y'])
    const acked = await receiveOne(engine, queue, { leaseMs: 1_000 })
    assert.deepEqual(await engine.queues.ack([acked.receipt], CONSUMER), DONE)
    // An engine may remember for a second longer.
    await pause(2_200)
    assert.deepEqual(await engine.queues.ack([acked.receipt], CONSUMER), { settled: 0, lost: [acked.receipt] })
    assert.equal(text((await receiveOne(engine, queue)).message), 'y')
  }),
]
