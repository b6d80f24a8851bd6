import { NATS_SERVER, natsServerVersion } from '@signalbox/engine-nats/testing'
import { setImmediate, setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'

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

  // Server 2.9 delivers some returned messages only after the ack wait.
  const waits = natsServerVersion().startsWith('2.9.')
  test.skipIf(waits)(
    'queues - a message that arrives while its node closes goes to another node, without a counted receive',
    async () => {
      const server = await startServer()
      const stays = await openNode(server)
      await stays.channels.create('queues', 'q')
      const seen = new Map<string, number>()
      const see = (deliveries: Awaited<ReturnType<typeof stays.queues.receive>>): void => {
        for (const { message } of deliveries) seen.set(text(message), message.receiveCount)
      }
      const sent: string[] = []
      for (let round = 0; round < 10; round++) {
        const leaves = await openNode(server)
        const receiving = Array.from({ length: 8 }, () => leaves.queues.receive('q', RECEIVE).then(see, () => {}))
        const bodies = Array.from({ length: 8 }, (_, i) => `${round}-${i}`)
        const sending = Promise.all(bodies.map((body) => stays.queues.send('q', queued(body))))
        sent.push(...bodies)
        await setImmediate()
        await leaves.close()
        await Promise.all([sending, ...receiving])
      }
      // Far sooner than the servers would give back what a node forgot.
      const until = Date.now() + 20_000
      while (seen.size < sent.length && Date.now() < until) {
        see(await stays.queues.receive('q', { ...RECEIVE, maxMessages: 100, waitMs: 1_000 }))
      }
      expect(sent.filter((body) => seen.get(body) !== 1)).toEqual([])
    },
    60_000,
  )
})
