import assert from 'node:assert/strict'

import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { assertNothingDue, CONSUMER, LONG_LEASE_MS, receiveOne, sendAll, text } from './messages.ts'
import { pause, rejectsWith } from './waiting.ts'

const SOMEBODY_ELSE = 'somebody-else'

const DONE = { settled: 1, lost: [] }

/** Cases for a client that repeats a settlement, because it did not get the answer. */
export const queueRepeatCases: readonly ContractCase[] = [
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
