import type { SettleResult } from '@signalbox/broker-core/engine'
import type { NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test, vi } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'

import type { Cuttable } from './support/cuttable.ts'
import { cuttable } from './support/cuttable.ts'
import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
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

  test('CL-21 - an extended lease whose owner died is not reported as lost if its message was removed', async () => {
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

const CUT_OFF = { patienceMs: 100, requestTimeoutMs: 2_000 }

/** Two nodes on one server, the network of the second of which can be cut. */
async function twoNodes() {
  const server = await startServer()
  const network = await cuttable(server.url)
  const here = await openNode(server, CUT_OFF)
  const away = await openNode(server, { ...CUT_OFF, servers: [network.url] })
  const cut = async (): Promise<void> => {
    network.cut()
    await vi.waitFor(async () => expect((await away.health()).ok).toBe(false), PATIENT)
  }
  const restore = async (): Promise<void> => {
    network.restore()
    await vi.waitFor(async () => expect((await away.health()).ok).toBe(true), PATIENT)
  }
  return { here, away, cut, restore }
}

describe.skipIf(NATS_SERVER === undefined)('a node that is cut off', () => {
  test('CL-3 - after a lease is taken over, only the new owner ends it', async () => {
    const { here, away, cut, restore } = await twoNodes()
    const once = { maxReceiveCount: 1, deadLetterQueue: 'dead' }
    for (const body of ['acked', 'extended']) await away.queues.send('q', queued(body, once))
    const deliveries = await away.queues.receive('q', { ...RECEIVE, maxMessages: 2, leaseMs: 6_000 })
    const [acked = '', extended = ''] = deliveries.map(({ receipt }) => receipt)
    await cut()
    expect(await here.queues.ack([acked], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await here.queues.extend([extended], CLIENT, 60_000)).toEqual({ settled: 1, lost: [] })
    await restore()
    // What it had in its hands before is asked for where it is now.
    for (let i = 0; i < 2; i++) {
      expect(await away.queues.extend([extended], CLIENT, 60_000)).toEqual({ settled: 1, lost: [] })
    }
    expect(await away.queues.ack([acked], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await away.queues.nack([acked], CLIENT)).toEqual({ settled: 0, lost: [acked] })
    // Past the end that the lease had where it was granted.
    expect(await here.queues.receive('dead', { ...RECEIVE, waitMs: 7_000 })).toEqual([])
    expect(await here.queues.ack([extended], CLIENT)).toEqual({ settled: 1, lost: [] })
  })

  test('CL-3 - a lease that no node took over is settled by its owner after the connection is back', async () => {
    const { here, away, cut, restore } = await twoNodes()
    for (const body of ['acked', 'lapsed']) await away.queues.send('q', queued(body))
    const [delivery] = await away.queues.receive('q', RECEIVE)
    const acked = delivery?.receipt ?? ''
    await away.queues.receive('q', { ...RECEIVE, leaseMs: 3_000 })
    await cut()
    await restore()
    expect(await here.queues.ack([acked], CLIENT)).toEqual({ settled: 1, lost: [] })
    const [again] = await here.queues.receive('q', RECEIVE)
    expect([again?.message.receiveCount, again && text(again.message)]).toEqual([2, 'lapsed'])
  })

  test('CL-5 - an extension that failed changes nothing', async () => {
    const { here, away, cut, restore } = await twoNodes()
    await away.queues.send('q', queued('x'))
    const [delivery] = await away.queues.receive('q', { ...RECEIVE, leaseMs: 5_000 })
    const receipt = delivery?.receipt ?? ''
    await cut()
    await expect(away.queues.extend([receipt], CLIENT, 120_000)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    await restore()
    const [again] = await here.queues.receive('q', { ...RECEIVE, waitMs: 15_000 })
    expect(again?.message.receiveCount).toBe(2)
    expect(await away.queues.ack([receipt], CLIENT)).toEqual({ settled: 0, lost: [receipt] })
  })

  test('CL-2 - a purge that cannot ask every node for its leases removes nothing', async () => {
    const { here, away, cut, restore } = await twoNodes()
    for (const body of ['leased', 'waiting']) await away.queues.send('q', queued(body))
    const [leased] = await away.queues.receive('q', RECEIVE)
    await vi.waitFor(async () => expect(await here.channels.info('queues', 'q')).toBeDefined(), PATIENT)
    await cut()
    await expect(here.queues.purge('q')).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    await restore()
    expect(await here.queues.purge('q')).toBe(1)
    expect(await away.queues.ack([leased?.receipt ?? ''], CLIENT)).toEqual({ settled: 1, lost: [] })
  })
})
