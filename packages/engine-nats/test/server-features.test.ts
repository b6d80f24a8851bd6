import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream'
import { jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { connect } from '@nats-io/transport-node'
import { assert, integer, property } from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { execFileSync } from 'node:child_process'

import { timeToLive } from '../src/queues/queue-sender.ts'
import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const KEPT = { expiredKeptMs: 1_000 }
const DAY_SECONDS = 86_400

/** The minor version of the nats-server at hand, 2. */
const MINOR = NATS_SERVER === undefined ? 0 : minorOf(execFileSync(NATS_SERVER, ['--version'], { encoding: 'utf8' }))
const OFFERS_TTL = MINOR >= 11

function minorOf(version: string): number {
  return Number(/v2\.(\d+)/.exec(version)?.[1] ?? 0)
}

/** The servers as an administrator sees them. */
async function administer(url: string) {
  const connection: NatsConnection = await connect({ servers: url })
  const manager: JetStreamManager = await jetstreamManager(connection)
  const queue = async () => {
    for await (const info of manager.streams.list()) if (info.config.name.startsWith('signalbox-q-')) return info
    throw new Error('no queue')
  }
  return {
    manager,
    queue,
    async held(): Promise<number> {
      return (await queue()).state.messages
    },
    async stored(sequence: number): Promise<StoredMsg | null> {
      return manager.streams.getMessage((await queue()).config.name, { seq: sequence })
    },
    [Symbol.asyncDispose]: () => connection.close(),
  }
}

test("time to live - whole seconds, never before the expiry and the retention, within the servers' range", () => {
  const now = 1_800_000_000_000
  expect(timeToLive(0, now, 1_000)).toBeUndefined()
  expect(timeToLive(now - 60_000, now, 0)).toBe(1)
  expect(timeToLive(Number.MAX_SAFE_INTEGER, now, 0)).toBeUndefined()
  assert(
    property(integer({ min: 1, max: 10 ** 11 }), integer({ min: 0, max: 10 ** 9 }), (leftMs, keptMs) => {
      const seconds = timeToLive(now + leftMs, now, keptMs) ?? 0
      expect(Number.isSafeInteger(seconds)).toBe(true)
      expect(seconds * 1_000).toBeGreaterThanOrEqual(leftMs + keptMs)
      expect(seconds * 1_000).toBeLessThan(leftMs + keptMs + 1_000)
    }),
    { seed: 31 },
  )
})

describe.skipIf(NATS_SERVER === undefined || OFFERS_TTL)('servers that offer nothing more', () => {
  test('CL-17 - servers without time to live get no message with it', async () => {
    const server = await startServer()
    const node = await openNode(server)
    expect(node.capabilities.expiryWithoutNode).toBe(false)
    const { sequence } = await node.queues.send('q', queued('x', { expirationMs: 60_000 }))
    await using servers = await administer(server.url)
    expect((await servers.queue()).config).not.toHaveProperty('allow_msg_ttl')
    expect((await servers.stored(sequence))?.header.keys()).toEqual([])
  })
})

describe.skipIf(!OFFERS_TTL)('servers that remove messages by themselves', () => {
  test('CL-17 - only expired messages are removed while no node runs', async () => {
    const server = await startServer()
    const node = await openNode(server, KEPT)
    expect(node.capabilities.expiryWithoutNode).toBe(true)
    await node.queues.send('q', queued('stays'))
    for (let i = 0; i < 3; i++) await node.queues.send('q', queued('goes', { expirationMs: 6_000 }))
    await node.queues.sendBatch('q', [
      queued('goes', { expirationMs: 6_000, delayMs: 60_000 }),
      queued('delayed', { delayMs: 3_000 }),
    ])
    await node.close()
    await using servers = await administer(server.url)
    expect(await servers.held()).toBe(6)
    await vi.waitFor(async () => expect(await servers.held()).toBe(2), PATIENT)
    const after = await openNode(server)
    const received = [await after.queues.receive('q', RECEIVE), await after.queues.receive('q', RECEIVE)]
    expect(received.flat().map(({ message }) => text(message))).toEqual(['stays', 'delayed'])
  })

  test('CL-17 - nodes remove and count expired messages long before the servers do', async () => {
    const server = await startServer()
    const node = await openNode(server)
    const { sequence } = await node.queues.send('q', queued('x', { expirationMs: 3_000 }))
    await using servers = await administer(server.url)
    const ttl = Number((await servers.stored(sequence))?.header.get('Nats-TTL'))
    expect(ttl).toBeGreaterThan(DAY_SECONDS)
    expect(ttl).toBeLessThanOrEqual(DAY_SECONDS + 3)
    await vi.waitFor(async () => expect(await servers.held()).toBe(0), PATIENT)
    await vi.waitFor(async () => {
      expect((await node.channels.info('queues', 'q'))?.queue).toMatchObject({ waiting: 0, expired: 1 })
    }, PATIENT)
  })

  test('CL-17 - the holder of a message settles it, also if it is expired or removed', async () => {
    const server = await startServer()
    const node = await openNode(server, { expiredKeptMs: 0 })
    for (const body of ['acked', 'nacked']) await node.queues.send('q', queued(body, { expirationMs: 5_000 }))
    const deliveries = await node.queues.receive('q', { ...RECEIVE, maxMessages: 2 })
    const [acked = '', nacked = ''] = deliveries.map(({ receipt }) => receipt)
    await using servers = await administer(server.url)
    await vi.waitFor(async () => expect(await servers.held()).toBe(0), PATIENT)
    expect(await node.queues.extend([acked], CLIENT, 60_000)).toEqual({ settled: 1, lost: [] })
    expect(await node.queues.ack([acked], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await node.queues.nack([nacked], CLIENT)).toEqual({ settled: 1, lost: [] })
    await node.queues.send('q', queued('next'))
    const [next] = await node.queues.receive('q', RECEIVE)
    expect(next && text(next.message)).toBe('next')
  })

  test('CL-17 - a dead letter does not expire', async () => {
    const server = await startServer()
    const node = await openNode(server, KEPT)
    const once = { expirationMs: 60_000, maxReceiveCount: 1, deadLetterQueue: 'dead' }
    await node.queues.send('q', queued('x', once))
    const [delivery] = await node.queues.receive('q', RECEIVE)
    await node.queues.nack([delivery?.receipt ?? ''], CLIENT)
    await using servers = await administer(server.url)
    const headers: string[][] = []
    for await (const { config, state } of servers.manager.streams.list()) {
      if (!config.name.startsWith('signalbox-q-') || state.messages === 0) continue
      const stored = await servers.manager.streams.getMessage(config.name, { seq: 1 })
      headers.push(stored?.header.keys() ?? [])
    }
    expect(headers).toEqual([['Nats-Msg-Id']])
  })

  test('CL-17 - a queue of older servers accepts messages at once, and its stream is updated', async () => {
    const server = await startServer()
    const before = await openNode(server)
    await before.queues.send('q', queued('x'))
    await using servers = await administer(server.url)
    const { config } = await servers.queue()
    const consumer = await servers.manager.consumers.info(config.name, 'receivers')
    // As servers before 2.11 made it.
    await servers.manager.streams.delete(config.name)
    await servers.manager.streams.add({ ...config, allow_msg_ttl: false })
    await servers.manager.consumers.add(config.name, consumer.config)
    const expiring = { expirationMs: 60_000, deduplicationId: 'one' }
    const first = await before.queues.send('q', queued('first', expiring))
    expect((await servers.stored(first.sequence))?.header.keys()).toEqual(['Nats-Msg-Id'])
    expect((await before.queues.send('q', queued('again', expiring))).duplicate).toBe(true)
    await openNode(server)
    await vi.waitFor(async () => expect((await servers.queue()).config.allow_msg_ttl).toBe(true), PATIENT)
    const { sequence } = await before.queues.send('q', queued('second', { expirationMs: 60_000 }))
    expect((await servers.stored(sequence))?.header.keys()).toEqual(['Nats-TTL'])
  })
})
