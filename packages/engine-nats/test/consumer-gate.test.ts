import type { QueueDelivery } from '@signalbox/broker-core'
import { createBroker, encodeText, PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import type { NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { openNode, startServer } from './support/nodes.ts'

const SOON = { waitMs: 30_000, leaseMs: 60_000 }

async function fill(engine: NatsEngine, count: number): Promise<void> {
  const inputs = Array.from({ length: count }, (_, i) => ({ body: encodeText(`${i + 1}`) }))
  await createBroker(engine).operators.as({ clientId: 'filler' }).queues.sendBatch('jobs', inputs)
}

describe.skipIf(NATS_SERVER === undefined)('gate', () => {
  test('gate - each node has its share of the limits, and the last one has all', async () => {
    const server = await startServer()
    const nodes = [await openNode(server), await openNode(server)]
    await fill(nodes[0]!, 40)
    for (const node of nodes) await expect.poll(() => node.otherNodes().length).toBe(1)
    const settings = { paused_until: null, max_per_second: 0, max_in_flight: 5 }
    const leased: QueueDelivery[] = []
    const aborter = new AbortController()
    const handles = nodes.map((node) => {
      node.settings.replace([{ type: 'queues', match: 'jobs', source: 'api', consumers: settings }])
      return createBroker(node).broker.as({ clientId: 'worker' })
    })
    const receivers = handles.flatMap(({ queues }) =>
      Array.from({ length: 10 }, async () => {
        const deliveries = await queues.receive('jobs', { ...SOON, maxMessages: 2, signal: aborter.signal })
        leased.push(...deliveries)
      }),
    )
    const ended = Promise.allSettled(receivers)
    await expect.poll(() => leased.length).toBe(6)
    expect(nodes.map(({ queues }) => queues.leased('jobs'))).toEqual([3, 3])
    aborter.abort()
    await ended
    expect(leased).toHaveLength(6)
    await nodes[1]!.close()
    await expect.poll(() => nodes[0]!.otherNodes().length).toBe(0)
    expect(await handles[0]!.queues.receive('jobs', { ...SOON, maxMessages: 9 })).toHaveLength(2)
  })

  test('pause - a receiver that waits when a pause begins gets no message of the pause', async () => {
    const node = await openNode(await startServer())
    const { broker } = createBroker(node)
    const waits: string[] = []
    broker.observe({ gateWaited: (reason) => void waits.push(reason) })
    const worker = broker.as({ clientId: 'worker' })
    await worker.channels.create('queues', 'jobs')
    const waiting = worker.queues.receive('jobs', SOON)
    broker.pauses.set('jobs', { until: PAUSED_UNTIL_RESUMED, reason: '', changedBy: 'ops' })
    await expect.poll(() => waits.length).toBe(1)
    await fill(node, 1)
    expect(await worker.queues.receive('jobs')).toEqual([])
    await expect.poll(async () => (await worker.channels.info('queues', 'jobs')).queue?.inFlight).toBe(0)
    broker.pauses.set('jobs', undefined)
    expect((await waiting)[0]?.message).toMatchObject({ receiveCount: 1 })
  })
})
