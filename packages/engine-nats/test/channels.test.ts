import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { connect } from '@nats-io/transport-node'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { cuttable } from './support/cuttable.ts'
import { CLIENT, queued, RECEIVE } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const QUEUES = 30

describe.skipIf(NATS_SERVER === undefined)('statistics', () => {
  test('statistics - concurrent calls share one read of the channels', async () => {
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

describe.skipIf(NATS_SERVER === undefined)('deleted channels', () => {
  test('channels - nodes drop the counts of queues that any node deleted', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (let i = 0; i < 5; i++) {
      const name = `q${i}`
      await one.queues.send(name, queued('x'))
      const [delivery] = await two.queues.receive(name, RECEIVE)
      if (i % 2 === 0) await two.queues.ack([delivery?.receipt ?? ''], CLIENT)
      expect(await one.channels.delete('queues', name)).toBe(true)
    }
    await one.events.publish('kept', queued('x'))
    await vi.waitFor(async () => expect(await two.channels.list('queues')).toEqual([]), { timeout: 20_000 })
    // Each minute; what is new is dropped the second time.
    for (const node of [one, two, one, two]) node.channels.forgetting.look()
    const connection = await connect({ servers: server.url })
    onTestFinished(() => connection.close())
    // A node that joins gets all counts of the others.
    const keys = new Map<string, readonly string[]>()
    connection.subscribe('signalbox.nodes.figures', {
      callback: (_error, message) => {
        const { node, figures } = message.json<{ node: string; figures: [string, unknown][] }>()
        keys.set(node, [...(keys.get(node) ?? []), ...figures.map(([key]) => key)])
      },
    })
    connection.publish('signalbox.nodes.hello', '{"node":"BBBBBBBBBBBBBBBB"}')
    await vi.waitFor(() => expect(keys.size).toBe(2), { timeout: 20_000 })
    expect([...keys.values()].flat()).toEqual(['events kept'])
  })
})

describe.skipIf(NATS_SERVER === undefined)('new channels', () => {
  test('channels - a server alone is asked for one stream after the other: messages wait for one at most', async () => {
    const server = await startServer()
    const network = await cuttable(server.url)
    const node = await openNode({ url: network.url })
    const { queues } = createBroker(node).broker.as(ANONYMOUS)
    const observer = await connect({ servers: server.url })
    onTestFinished(() => observer.close())
    let asked = 0
    observer.subscribe('$JS.API.STREAM.CREATE.*', { callback: () => void asked++ })
    await observer.flush()
    const held = network.holdAnswers('$JS.API.STREAM.CREATE.')
    const sent = Promise.all(Array.from({ length: QUEUES }, (_, i) => queues.send(`q${i}`, { body: 'x' })))
    await held
    // The other requests would follow at once.
    await delay(200)
    await observer.flush()
    expect(asked).toBe(1)
    network.release()
    await sent
    expect((await node.channels.names('queues')).length).toBe(QUEUES)
    expect(asked).toBe(QUEUES)
  })
})
