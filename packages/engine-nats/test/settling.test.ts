import type { SettleResult } from '@signalbox/broker-core/engine'
import type { NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'

import type { Cuttable } from './support/cuttable.ts'
import { cuttable } from './support/cuttable.ts'
import { CLIENT, queued, RECEIVE } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const QUICK = { patienceMs: 100, requestTimeoutMs: 3_000 }
const DONE = { settled: 1, lost: [] }
const ACKED = { code: 'ENGINE_UNAVAILABLE', message: expect.stringContaining('the message may be acknowledged') }
/** Longer than a node waits for the answer of another one before it asks again. */
const SLOW_MS = 1_300

type Settle = 'ack' | 'nack' | 'extend'

/** The first bytes of a settlement that the servers get. */
const SENT: Readonly<Record<Settle, string>> = { ack: '+ACK', nack: '-NAK', extend: '-NAK {' }

/** A step of a settlement at the owner of the lease, as the moment at which its network stops. */
const STEPS: readonly (readonly [string, (network: Cuttable, settle: Settle) => Promise<void>])[] = [
  ['before it hears of the call', (network) => network.holdAnswers()],
  ['before the servers have it', (network, settle) => network.holdRequests(SENT[settle])],
  ['before it knows that the servers have it', (network, settle) => network.holdAnswers(SENT[settle])],
]

const CASES = STEPS.flatMap(([step, stop]) =>
  (['ack', 'nack', 'extend'] as const).map((what) => ({ what, step, stop })),
)

function settle(node: NatsEngine, what: Settle, receipt: string): Promise<SettleResult> {
  if (what === 'extend') return node.queues.extend([receipt], CLIENT, 120_000)
  return node.queues[what]([receipt], CLIENT)
}

/** A message that the node `owner` leases, whose network can be stopped, and another node. */
async function leased(leaseMs = RECEIVE.leaseMs) {
  const server = await startServer()
  const network = await cuttable(server.url)
  const other = await openNode(server, QUICK)
  const owner = await openNode(server, { ...QUICK, servers: [network.url] })
  await owner.queues.send('q', queued('x'))
  await vi.waitFor(async () => expect(await other.channels.info('queues', 'q')).toBeDefined(), PATIENT)
  const [delivery] = await owner.queues.receive('q', { ...RECEIVE, leaseMs })
  return { network, owner, other, receipt: delivery?.receipt ?? '' }
}

/** Asserts that the message is where the settlement puts it, and that it is there once. */
async function expectSettled(node: NatsEngine, what: Settle, receipt: string): Promise<void> {
  expect(await settle(node, what, receipt)).toEqual(DONE)
  const again = await node.queues.receive('q', { ...RECEIVE, waitMs: what === 'nack' ? 10_000 : 0 })
  expect(again.map(({ message }) => message.receiveCount)).toEqual(what === 'nack' ? [2] : [])
  const held = what === 'extend' ? [receipt] : again.map((delivery) => delivery.receipt)
  expect(await node.queues.ack(held, CLIENT)).toEqual({ settled: held.length, lost: [] })
  expect(await node.queues.peek('q', { maxMessages: 1 })).toEqual([])
}

describe.skipIf(NATS_SERVER === undefined)('settling at another node', () => {
  test.each(CASES)('CL-21 - $what is settled if the owner of the lease is slow $step', async ({ what, stop }) => {
    const { network, other, receipt } = await leased()
    const stopped = stop(network, what)
    const answer = settle(other, what, receipt)
    await stopped
    await pause(SLOW_MS)
    network.release()
    expect(await answer).toEqual(DONE)
    await expectSettled(other, what, receipt)
  })

  test.each(CASES)('CL-21 - $what is settled if the owner of the lease dies $step', async ({ what, stop }) => {
    const { network, other, receipt } = await leased()
    const stopped = stop(network, what)
    const answer = settle(other, what, receipt)
    await stopped
    // What was sent before arrives.
    await pause(100)
    network.cut()
    expect(await answer).toEqual(DONE)
    await expectSettled(other, what, receipt)
  })

  test('CL-21 - an ack whose answer died with the owner is settled at another node, and no other call is', async () => {
    const { network, owner, other, receipt } = await leased()
    expect(await settle(owner, 'ack', receipt)).toEqual(DONE)
    network.cut()
    expect(await settle(other, 'ack', receipt)).toEqual(DONE)
    await expect(settle(other, 'nack', receipt)).rejects.toMatchObject(ACKED)
    await expect(settle(other, 'extend', receipt)).rejects.toMatchObject(ACKED)
  })

  test('CL-21 - nobody calls an extended lease lost whose owner died, if its message is gone', async () => {
    const { network, owner, other, receipt } = await leased(1_000)
    expect(await settle(owner, 'extend', receipt)).toEqual(DONE)
    await pause(1_100)
    expect(await settle(owner, 'ack', receipt)).toEqual(DONE)
    network.cut()
    await expect(settle(other, 'ack', receipt)).rejects.toMatchObject(ACKED)
  })

  test('CL-21 - a receipt is lost at another node if its lease ended with the message in the queue', async () => {
    const { network, other, receipt } = await leased(1_000)
    network.cut()
    await pause(1_100)
    for (const what of ['ack', 'nack', 'extend'] as const) {
      expect(await settle(other, what, receipt)).toEqual({ settled: 0, lost: [receipt] })
    }
    expect(await other.queues.peek('q', { maxMessages: 1 })).toHaveLength(1)
  })

  test('CL-21 - after an ack without an answer from the servers only an ack can succeed', async () => {
    const { network, owner, receipt } = await leased()
    const stopped = network.holdAnswers(SENT.ack)
    const acked = settle(owner, 'ack', receipt)
    await stopped
    await expect(acked).rejects.toMatchObject(ACKED)
    network.release()
    await expect(settle(owner, 'nack', receipt)).rejects.toMatchObject(ACKED)
    await expect(settle(owner, 'extend', receipt)).rejects.toMatchObject(ACKED)
    await expectSettled(owner, 'ack', receipt)
  })
})
