import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { connect } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { queued, RECEIVE } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const QUEUES = 30

describe.skipIf(NATS_SERVER === undefined)('statistics', () => {
  test('statistics - readers at the same time share one pass over the channels, and those right after it', async () => {
    const server = await startServer()
    const node = await openNode(server)
    for (let i = 0; i < QUEUES; i++) await node.queues.send(`q${i}`, queued('x'))
    await node.queues.send('q0', queued('delayed', { delayMs: 60_000 }))
    await node.queues.receive('q1', RECEIVE)
    const observer = await connect({ servers: server.url })
    onTestFinished(() => observer.close())
    let asked = 0
    observer.subscribe('$JS.API.>', { callback: () => void asked++ })
    await observer.flush()
    const all = await Promise.all(Array.from({ length: 10 }, () => node.stats()))
    expect(new Set(all.map((stats) => JSON.stringify(stats))).size).toBe(1)
    expect(all[0]).toMatchObject({ channels: QUEUES, queues: { waiting: QUEUES - 1, delayed: 1, inFlight: 1 } })
    for (let i = 0; i < 10; i++) await node.stats()
    await observer.flush()
    expect(asked).toBe(QUEUES)
    await node.queues.send('q0', queued('y'))
    await vi.waitFor(async () => expect((await node.stats()).queues.waiting).toBe(QUEUES), { timeout: 20_000 })
  })
})
