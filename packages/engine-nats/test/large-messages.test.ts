// cspell:ignore connz

import { encodeText } from '@signalbox/broker-core'
import type { NatsEngine } from '@signalbox/engine-nats'
import type { NatsServer } from '@signalbox/engine-nats/testing'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test, vi } from 'vitest'

import { PublishOrder } from '../src/publisher.ts'
import { cuttable } from './support/cuttable.ts'
import { outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const ALL = { maxMessages: 100, maxBytes: 100_000_000 }
const LARGE = 'x'.repeat(2_000_000)

/** The bytes that crossed each connection of a node. */
interface Traffic {
  readonly first: { readonly in: number; readonly out: number }
  /** Undefined before the connection for large messages is open. */
  readonly large: { readonly in: number; readonly out: number } | undefined
}

/** Returns the bytes that a server has received from a node, and sent to it. */
async function traffic(server: NatsServer): Promise<Traffic> {
  const { connections } = (await server.monitor('/connz', 5_000)) as {
    readonly connections: readonly { readonly name: string; readonly in_bytes: number; readonly out_bytes: number }[]
  }
  const of = (isLarge: boolean) => {
    const found = connections.find(({ name }) => name.endsWith('-large') === isLarge)
    return found && { in: found.in_bytes, out: found.out_bytes }
  }
  return { first: of(false) ?? { in: 0, out: 0 }, large: of(true) }
}

/** Sends a large message, which opens the connection for such messages, and waits until that is open. */
async function openLarge(node: NatsEngine, server: NatsServer): Promise<void> {
  await node.queues.send('opening', queued(LARGE))
  await node.queues.peek('opening', ALL)
  await vi.waitFor(async () => expect((await traffic(server)).large).toBeDefined(), PATIENT)
  // Then the node knows it too.
  await vi.waitFor(async () => {
    await node.queues.send('opening', queued(LARGE))
    expect((await traffic(server)).large?.in).toBeGreaterThan(LARGE.length)
  }, PATIENT)
}

test('large messages - while their connection is lost, no message follows one that is under way on it', async () => {
  const order = new PublishOrder()
  const lost = Promise.withResolvers<void>()
  const ways: [string, boolean][] = []
  const publish = (name: string, ended?: Promise<void>) => async (isLarge: boolean) => {
    ways.push([name, isLarge])
    await ended
  }
  const sent = [
    order.run('q', { isLarge: true, isOpen: true }, publish('large', lost.promise)),
    order.run('q', { isLarge: false, isOpen: true }, publish('small', lost.promise)),
    order.run('q', { isLarge: false, isOpen: false }, publish('later')),
  ]
  expect(ways).toEqual([
    ['large', true],
    ['small', true],
  ])
  lost.resolve()
  await Promise.all(sent)
  expect(ways.at(-1)).toEqual(['later', false])
})

describe.skipIf(NATS_SERVER === undefined)('large messages on NATS', () => {
  test('large messages - they are sent and received on a second connection, small ones on the first', async () => {
    const server = await startServer({ monitored: true })
    const node = await openNode(server)
    await node.queues.send('small', queued('a'))
    expect((await traffic(server)).large).toBeUndefined()
    await openLarge(node, server)
    // The first answer of each stream shows that it has large messages.
    await node.eventsStore.append('s', outgoing(LARGE))
    await node.eventsStore.read('s', ALL)
    const before = await traffic(server)
    await node.queues.send('opening', queued(LARGE))
    await node.eventsStore.append('s', outgoing(LARGE))
    expect((await node.eventsStore.read('s', ALL)).map(text)).toEqual([LARGE, LARGE])
    const [delivery] = await node.queues.receive('opening', RECEIVE)
    expect(delivery && text(delivery.message)).toBe(LARGE)
    await node.queues.send('small', queued('b'))
    expect((await node.queues.peek('small', ALL)).map(text)).toEqual(['a', 'b'])
    const after = await traffic(server)
    expect((after.large?.in ?? 0) - (before.large?.in ?? 0)).toBeGreaterThan(2 * LARGE.length)
    expect((after.large?.out ?? 0) - (before.large?.out ?? 0)).toBeGreaterThan(3 * LARGE.length)
    expect(after.first.in - before.first.in).toBeLessThan(100_000)
    expect(after.first.out - before.first.out).toBeLessThan(100_000)
  })

  test('large messages - while the second connection is lost they use the first', async () => {
    const server = await startServer({ monitored: true })
    const network = await cuttable(server.url)
    const warnings: string[] = []
    const node = await openNode(server, {
      servers: [network.url],
      requestTimeoutMs: 2_000,
      onProblem: ({ kind, message }) => void warnings.push(`${kind}: ${message}`),
    })
    await openLarge(node, server)
    await node.queues.send('q', queued(LARGE))
    network.cutLarge()
    await vi.waitFor(async () => expect((await node.queues.peek('q', ALL)).length).toBe(1), PATIENT)
    await vi.waitFor(() => node.queues.send('q', queued(LARGE)), PATIENT)
    const [delivery] = await node.queues.receive('q', RECEIVE)
    expect(delivery && text(delivery.message)).toBe(LARGE)
    expect((await node.health()).ok).toBe(true)
    expect((await traffic(server)).first.out).toBeGreaterThan(2 * LARGE.length)
    expect(warnings.filter((warning) => warning.includes('connection'))).toEqual([
      'warning: NATS: the second connection is lost; large messages use the first one until it is back',
    ])
  })

  test('large messages - a batch of large and small messages keeps its order', async () => {
    const server = await startServer({ monitored: true })
    const node = await openNode(server)
    await openLarge(node, server)
    const bodies = ['1', '2', `3${LARGE}`, '4', `5${LARGE}`, '6', '7']
    for (let round = 0; round < 5; round++) {
      await node.queues.purge('q').catch(() => {})
      await node.queues.sendBatch(
        'q',
        bodies.map((body) => queued(body)),
      )
      expect((await node.queues.peek('q', ALL)).map((message) => text(message)[0]).join('')).toBe('1234567')
    }
  })

  test('large messages - a command waits for its subscriber, and its answer comes on the second connection', async () => {
    const server = await startServer({ monitored: true })
    const [one, two] = [await openNode(server), await openNode(server)]
    await openLarge(one, server)
    const nobody = { timeoutMs: 20_000, onlyIfSubscribed: true }
    await expect(one.requests.request('commands', 'c', outgoing(LARGE), nobody)).rejects.toMatchObject({
      code: 'NO_SUBSCRIBER',
    })
    const waiting = one.requests.request('commands', 'c', outgoing(LARGE), { timeoutMs: 20_000 })
    const begin = performance.now()
    await two.requests.serve('commands', 'c', {}, (message) =>
      Promise.resolve({ executed: true, error: '', body: encodeText(text(message)), metadata: '', tags: {} }),
    )
    expect(text(await waiting)).toBe(LARGE)
    // The announcement of the subscriber has sent it: without, it would be sent again after three seconds.
    expect(performance.now() - begin).toBeLessThan(2_000)
  })
})
