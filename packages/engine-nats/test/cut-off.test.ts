import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test, vi } from 'vitest'

import { cuttable } from './support/cuttable.ts'
import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const QUICK = { patienceMs: 100, requestTimeoutMs: 2_000 }

/** Two nodes on one server, the network of the second of which can be cut. */
async function twoNodes() {
  const server = await startServer()
  const network = await cuttable(server.url)
  const here = await openNode(server, QUICK)
  const away = await openNode(server, { ...QUICK, servers: [network.url] })
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
  test('CL-3 - a lease that another node took over meanwhile is that one’s, and ends nowhere else', async () => {
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

  test('CL-3 - a lease that no node took over meanwhile is settled as before, and ends in its time', async () => {
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
