// cspell:ignore connz

import type { NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { outgoing, queued, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const ALL = { maxMessages: 100, maxBytes: 100_000_000 }

/** Sends a message to a queue, appends it to a store, and returns what reads of both return. */
async function readBack(node: NatsEngine, body: string): Promise<string[]> {
  await node.queues.send('q', queued(body))
  await node.eventsStore.append('s', outgoing(body))
  const messages = [await node.queues.peek('q', ALL), await node.eventsStore.read('s', ALL)]
  return messages.map((found) => found.map(text).join())
}

describe.skipIf(NATS_SERVER === undefined)('reads of stored messages', () => {
  test('reads - a read of large messages fetches little more than it returns', async () => {
    const server = await startServer({ monitored: true })
    const node = await openNode(server)
    const body = 'x'.repeat(2_000_000)
    for (let n = 0; n < 12; n++) {
      await node.queues.send('q', queued(body))
      await node.eventsStore.append('s', outgoing(body))
    }
    const sent = async (): Promise<number> =>
      ((await server.monitor('/varz', 5_000)) as { out_bytes: number }).out_bytes
    const options = { maxMessages: 12, maxBytes: 4_000_000 }
    const reads = [
      () => node.queues.peek('q', options),
      () => node.eventsStore.read('s', options),
      () => node.eventsStore.readLatest('s', options),
    ]
    for (const read of reads) {
      const before = await sent()
      expect((await read()).length).toBeLessThanOrEqual(2)
      // The third message shows that no more fit.
      expect((await sent()) - before).toBeLessThan(3 * 2_000_000 * 1.1)
    }
  })

  test('reads - many reads of large messages in one channel delay a read of another channel by a few of them', async () => {
    // Its largest message has 16 MB, so there is space for one read at a time.
    const server = await startServer()
    const node = await openNode(server)
    expect(await readBack(node, 'a')).toEqual(['a', 'a'])
    await node.queues.purge('q')
    await node.queues.send('q', queued('x'.repeat(4_000_000)))
    const ended: string[] = []
    const read = async (name: string, of: Promise<unknown>): Promise<void> => {
      await of
      ended.push(name)
    }
    const large = Array.from({ length: 16 }, () => read('large', node.queues.peek('q', ALL)))
    await Promise.all([...large, read('small', node.eventsStore.read('s', ALL))])
    expect(ended.indexOf('small')).toBeLessThan(8)
  })

  test('reads - reads of a frozen server all end in the time of one', async () => {
    const server = await startServer()
    const node = await openNode(server, { requestTimeoutMs: 1_000 })
    expect(await readBack(node, 'a')).toEqual(['a', 'a'])
    server.pause()
    const begin = performance.now()
    const reads = await Promise.allSettled(Array.from({ length: 40 }, () => node.eventsStore.read('s', ALL)))
    server.resume()
    expect(performance.now() - begin).toBeLessThan(8_000)
    expect(new Set(reads.map(({ status }) => status))).toEqual(new Set(['rejected']))
  })

  test('reads - a stream that does not answer directly is read, and adjusted at the next start', async () => {
    const server = await startServer()
    const node = await openNode(server, { requestTimeoutMs: 1_000 })
    await node.channels.create('queues', 'q')
    await node.channels.create('events_store', 's')
    const connection = await connect({ servers: server.url })
    onTestFinished(() => connection.close())
    const { streams } = await jetstreamManager(connection)
    const direct = async (change?: boolean): Promise<(boolean | undefined)[]> => {
      const found: (boolean | undefined)[] = []
      for await (const { config } of streams.list()) {
        if (!/-[ql]-/.test(config.name)) continue
        found.push(config.allow_direct)
        if (change !== undefined) await streams.update(config.name, { allow_direct: change })
      }
      return found
    }
    expect(await direct(false)).toEqual([true, true])
    expect(await readBack(node, 'a')).toEqual(['a', 'a'])
    expect(await readBack(await openNode(server), 'b')).toEqual(['a,b', 'a,b'])
    await vi.waitFor(async () => expect(await direct()).toEqual([true, true]), PATIENT)
    // A node that has read them directly finds out that they do not answer any more.
    const other = await openNode(server, { requestTimeoutMs: 1_000 })
    expect(await readBack(other, 'c')).toEqual(['a,b,c', 'a,b,c'])
    await direct(false)
    expect(await readBack(other, 'd')).toEqual(['a,b,c,d', 'a,b,c,d'])
  })

  test('reads - a read of a channel that is deleted meanwhile ends at once', async () => {
    const server = await startServer()
    const node = await openNode(server)
    expect(await readBack(node, 'a')).toEqual(['a', 'a'])
    const connection = await connect({ servers: server.url })
    onTestFinished(() => connection.close())
    const { streams } = await jetstreamManager(connection)
    for await (const { config } of streams.list()) {
      if (config.name.includes('-q-')) await streams.update(config.name, { allow_direct: false })
    }
    // Nothing answers it now, as if the stream were deleted.
    const begin = performance.now()
    const read = node.queues.peek('q', ALL)
    const other = await openNode(server)
    await other.channels.delete('queues', 'q')
    await read.catch(() => {})
    // Without an answer it would ask otherwise after 2 s.
    expect(performance.now() - begin).toBeLessThan(1_900)
  })

  test('reads - a user who may not read directly reads as well', async () => {
    const denied = 'permissions: { publish: { deny: ["$JS.API.DIRECT.GET.>"] } }'
    const server = await startServer({
      config: `authorization { users: [{ user: node, password: a, ${denied} }] }`,
    })
    const node = await openNode(server, { servers: [server.url.replace('//', '//node:a@')] })
    expect(await readBack(node, 'a')).toEqual(['a', 'a'])
  })
})
