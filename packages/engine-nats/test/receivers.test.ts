// cspell:ignore UNSUB
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'

import { cuttable } from './support/cuttable.ts'
import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const MESSAGES = 600

describe.skipIf(NATS_SERVER === undefined)('receivers', () => {
  test('queues - a message for a receiver that leaves is delivered to another one, and its receive count does not grow', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    await one.channels.create('queues', 'q')
    await expect.poll(() => two.channels.info('queues', 'q')).toBeDefined()
    const seen = new Map<string, number>()
    const done = new AbortController()
    const leaving: AbortController[] = []
    const receiver = async (node: typeof one): Promise<void> => {
      while (!done.signal.aborted) {
        const controller = new AbortController()
        leaving.push(controller)
        const deliveries = await node.queues
          .receive('q', { ...RECEIVE, maxMessages: 2, waitMs: 2_000, signal: controller.signal })
          .catch(() => [])
        // Others leave while more is on its way to them.
        for (const other of leaving.splice(0, deliveries.length)) other.abort(new Error('gone'))
        for (const { message } of deliveries) seen.set(text(message), message.receiveCount)
        await node.queues.ack(
          deliveries.map(({ receipt }) => receipt),
          CLIENT,
        )
      }
    }
    const receiving = Array.from({ length: 24 }, (_, i) => receiver(i % 2 === 0 ? one : two))
    for (let i = 0; i < MESSAGES; i += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, j) => one.queues.send('q', queued(`${i + j}`))))
      await pause(5)
    }
    try {
      // Far sooner than the servers would give back what a node forgot.
      await expect.poll(() => seen.size, { timeout: 20_000 }).toBe(MESSAGES)
    } finally {
      done.abort()
      await Promise.all(receiving)
    }
    expect([...seen.values()].filter((count) => count !== 1)).toEqual([])
  }, 60_000)

  test('queues - a message that arrives while its node closes goes to another node, without a counted receive', async () => {
    const server = await startServer()
    const network = await cuttable(server.url)
    const stays = await openNode(server)
    const leaves = await openNode(server, { servers: [network.url] })
    const bodies = Array.from({ length: 8 }, (_, i) => `${i}`)
    await stays.channels.create('queues', 'q')
    await expect.poll(() => leaves.channels.info('queues', 'q')).toBeDefined()
    const receiving = bodies.map(() => leaves.queues.receive('q', RECEIVE).catch(() => []))
    // The node's requests have reached the servers when they have answered a later one.
    await leaves.queues.peek('q', { maxMessages: 1 })
    // The servers send every message before they know that the node leaves: they count messages that they fail to deliver.
    await network.holdAnswers()
    await Promise.all(bodies.map((body) => stays.queues.send('q', queued(body))))
    await expect.poll(() => network.heldAnswers(' $JS.ACK.')).toBe(bodies.length)
    const left = network.holdAnswers('UNSUB')
    const closed = leaves.close()
    await left
    network.release()
    await closed
    expect((await Promise.all(receiving)).flat()).toEqual([])
    const seen = new Map<string, number>()
    // Far sooner than the servers would give back what a node forgot.
    const until = Date.now() + 20_000
    while (seen.size < bodies.length && Date.now() < until) {
      const deliveries = await stays.queues.receive('q', { ...RECEIVE, maxMessages: 100, waitMs: 1_000 })
      for (const { message } of deliveries) seen.set(text(message), message.receiveCount)
    }
    expect(seen).toEqual(new Map(bodies.map((body) => [body, 1])))
  }, 60_000)
})
