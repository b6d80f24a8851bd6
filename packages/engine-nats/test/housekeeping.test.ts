import type { SettingsEntry, StoredEvent } from '@signalbox/broker-core'
import type { NatsEngineProblem } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, natsServerVersion } from '@signalbox/engine-nats/testing'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, test, vi } from 'vitest'

import { outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }

/** JetStream as an administrator sees it. */
async function managerOf(url: string) {
  const connection = await connect({ servers: url })
  const { consumers, streams } = await jetstreamManager(connection)
  const streamNames = async (): Promise<string[]> => {
    const names: string[] = []
    for await (const { config } of streams.list()) names.push(config.name)
    return names
  }
  return { consumers, streams, streamNames, [Symbol.asyncDispose]: () => connection.close() }
}

describe.skipIf(NATS_SERVER === undefined)('housekeeping', () => {
  test('compaction - a tombstone is removed after an hour, and its key can be created again', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.channels.create('events_store', 'log', { compacted: true })
    await node.eventsStore.append('log', { ...outgoing('x'), key: 'gone' })
    await node.eventsStore.append('log', { ...outgoing(''), key: 'gone', tombstone: true })
    await node.eventsStore.append('log', { ...outgoing(''), key: 'back', tombstone: true })
    await node.eventsStore.append('log', { ...outgoing('again'), key: 'back' })
    await node.eventsStore.tombstones.sweep(Date.now() + 59 * 60_000)
    expect((await node.eventsStore.getLast('log', 'gone'))?.tombstone).toBe(true)
    await node.eventsStore.tombstones.sweep(Date.now() + 61 * 60_000)
    expect(await node.eventsStore.getLast('log', 'gone')).toBeUndefined()
    const last = await node.eventsStore.getLast('log', 'back')
    expect(last && text(last)).toBe('again')
    const { sequence } = await node.eventsStore.append('log', { ...outgoing('anew'), key: 'gone', expectLastOfKey: 0 })
    expect(sequence).toBe(5)
  })

  test('options - changed limits apply to existing channels', async () => {
    const server = await startServer()
    const before = await openNode(server)
    await before.queues.send('q', queued('x'))
    await before.close()
    const after = await openNode(server, { queueMaxMessages: 1 })
    await vi.waitFor(async () => {
      await expect(after.queues.send('q', queued('y'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    }, PATIENT)
  })

  test('settings - streams follow them, and a starting node changes none before it knows them', async () => {
    const server = await startServer()
    const retention = { max_messages: 5, max_bytes: 0, on_expiry: 'drop', compact: false } as const
    const settings: SettingsEntry[] = [
      {
        type: 'queues',
        match: 'q',
        source: 'api',
        retention: { ...retention, max_age_seconds: 60 },
        deduplication: { window_seconds: 3_600 },
      },
      { type: 'events_store', match: 'l', source: 'api', retention: { ...retention, max_age_seconds: 7_200 } },
    ]
    await using manager = await managerOf(server.url)
    const limits = async (): Promise<unknown> => {
      const found: Record<string, unknown> = {}
      for await (const { config } of manager.streams.list()) {
        const kind = /^signalbox-([ql])-/.exec(config.name)?.[1]
        if (kind) found[kind] = [config.max_msgs, config.max_age / 1e9, config.duplicate_window / 1e9]
      }
      return found
    }
    // A server before 2.10.5 keeps its limit of messages, and the nodes refuse more.
    const bySettings = { q: [natsServerVersion().startsWith('2.9.') ? -1 : 5, 0, 3_600], l: [-1, 7_200, 120] }
    const byServer = { q: [-1, 0, 120], l: [-1, 60, 60] }
    const before = await openNode(server)
    await before.queues.send('q', queued('x'))
    await before.eventsStore.append('l', outgoing('x'))
    before.settings.replace(settings)
    await vi.waitFor(async () => expect(await limits()).toEqual(bySettings), PATIENT)
    await before.close()
    const after = await openNode(server, { eventsStoreMaxAgeMs: 60_000 })
    await after.housekeeping.look(Date.now())
    expect(await limits()).toEqual(bySettings)
    after.settings.replace([])
    await vi.waitFor(async () => expect(await limits()).toEqual(byServer), PATIENT)
  })

  test('options - a lower limit removes no message of a queue', async () => {
    const server = await startServer()
    const before = await openNode(server)
    for (const body of ['a', 'b', 'c']) await before.queues.send('q', queued(body))
    await before.close()
    const after = await openNode(server, { queueMaxMessages: 1, queueMaxBytes: 1 })
    await after.housekeeping.look(Date.now())
    await expect(after.queues.send('q', queued('d'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    const deliveries = await after.queues.receive('q', { ...RECEIVE, maxMessages: 5 })
    expect(deliveries.map(({ message }) => text(message))).toEqual(['a', 'b', 'c'])
  })

  test('options - a message over the servers’ max_payload is MESSAGE_TOO_LARGE, and the start warns', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    expect(node.limits.maxMessageBytes).toBe(16 * 1024 * 1024 - 4_096)
    expect(problems.map(({ kind, message }) => `${kind}: ${message}`).join('\n')).toMatch(/warning: .*max_payload/)
    const tooLarge = queued('x'.repeat(16 * 1024 * 1024))
    const refused = { code: 'MESSAGE_TOO_LARGE' }
    await expect(node.queues.send('q', tooLarge)).rejects.toMatchObject(refused)
    await expect(node.queues.sendBatch('q', [queued('x'), tooLarge])).rejects.toMatchObject(refused)
    await expect(node.eventsStore.append('l', tooLarge)).rejects.toMatchObject(refused)
    await expect(node.events.publish('t', tooLarge)).rejects.toMatchObject(refused)
    const request = node.requests.request('queries', 'r', tooLarge, { timeoutMs: 1_000 })
    await expect(request).rejects.toMatchObject(refused)
    expect(await node.channels.list()).toEqual([])
  })

  test('start - without JetStream, or with more replicas than servers, the error names the cause', async () => {
    const without = await startServer({ jetstream: false })
    const refused = openNatsEngine({ servers: [without.url], waitForServers: false, requestTimeoutMs: 3_000 })
    await expect(refused).rejects.toMatchObject({ code: 'JETSTREAM_MISSING' })
    const problems: NatsEngineProblem[] = []
    const leaving = new AbortController()
    const waiting = openNatsEngine({
      servers: [without.url],
      signal: leaving.signal,
      requestTimeoutMs: 3_000,
      onProblem: (problem) => problems.push(problem),
    })
    await vi.waitFor(() => expect(problems.map(({ kind }) => kind)).toEqual(['disconnected']), PATIENT)
    leaving.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    const alone = await startServer()
    const three = openNatsEngine({ servers: [alone.url], replicas: 3 })
    await expect(three).rejects.toMatchObject({ code: 'JETSTREAM_MISSING' })
    await expect(three).rejects.toThrow(/replicas/)
  })

  test('streams - deleting a channel removes all its data', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.queues.send('q', queued('x'))
    await node.eventsStore.append('l', outgoing('x'))
    await node.channels.delete('queues', 'q')
    await node.channels.delete('events_store', 'l')
    await using manager = await managerOf(server.url)
    expect((await manager.streamNames()).toSorted()).toEqual([
      'KV_signalbox-channels',
      'signalbox-notes',
      'signalbox-recent',
    ])
  })

  test('channels - a node replaces a consumer that the servers lost, once, and misses no change', async () => {
    const server = await startServer()
    const [node, other] = [await openNode(server), await openNode(server)]
    await using manager = await managerOf(server.url)
    const bucket = 'KV_signalbox-channels'
    const readers = async (): Promise<readonly string[]> => {
      const names: string[] = []
      for await (const { name } of manager.consumers.list(bucket)) names.push(name)
      return names
    }
    for (let i = 0; i < 3; i++) {
      await vi.waitFor(async () => expect(await readers()).toHaveLength(2), PATIENT)
      const before = await readers()
      for (const name of before) await manager.consumers.delete(bucket, name)
      await other.channels.create('queues', `made ${i} in the meantime`)
      await vi.waitFor(async () => expect((await node.channels.list('queues')).length).toBe(i + 1), PATIENT)
      await vi.waitFor(async () => expect((await readers()).some((name) => before.includes(name))).toBe(false), PATIENT)
    }
    await vi.waitFor(async () => expect(await readers()).toHaveLength(2), PATIENT)
  })

  test('streams - a stream without a channel is removed a minute after a node first saw it', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.queues.send('kept', queued('x'))
    await using manager = await managerOf(server.url)
    const names = async (): Promise<string[]> => (await manager.streamNames()).filter((name) => name.includes('-q-'))
    const [kept = ''] = await names()
    await manager.streams.add({ name: 'signalbox-q-left', subjects: ['left'], description: 'queues "kept"' })
    await manager.streams.add({ name: 'signalbox-q-foreign', subjects: ['foreign'] })
    const now = Date.now()
    await node.housekeeping.look(now)
    await node.housekeeping.look(now + 59_000)
    expect((await names()).toSorted()).toEqual([kept, 'signalbox-q-foreign', 'signalbox-q-left'].toSorted())
    await node.housekeeping.look(now + 61_000)
    expect((await names()).toSorted()).toEqual([kept, 'signalbox-q-foreign'].toSorted())
    expect((await node.queues.receive('kept', RECEIVE)).map(({ message }) => text(message))).toEqual(['x'])
  })

  test('streams - a starting node keeps the streams that another node is creating', async () => {
    const server = await startServer()
    const making = await openNode(server)
    const starting = [await openNode(server), await openNode(server), await openNode(server)]
    const connection = await connect({ servers: server.url })
    const removed: string[] = []
    connection.subscribe('$JS.EVENT.ADVISORY.STREAM.DELETED.>', {
      callback: (_error, message) => void removed.push(message.subject),
    })
    await connection.flush()
    const done = new AbortController()
    const looking = starting.map(async (node) => {
      while (!done.signal.aborted) await node.housekeeping.look(Date.now())
    })
    // Servers list a stream that they are making as one of the year 1: in one of some fifty, with three who look.
    for (let i = 0; i < 120; i++) await making.channels.create('queues', `q${i}`)
    done.abort()
    await Promise.all(looking)
    await connection.close()
    expect(removed).toEqual([])
  })

  test('CL-6 - a subscription replaces a consumer that is alive and delivers nothing', async () => {
    const server = await startServer()
    const node = await openNode(server)
    const seen: number[] = []
    const listener = ({ sequence }: StoredEvent): void => void seen.push(sequence)
    const subscription = await node.eventsStore.subscribe('log', { from: 'first' }, {}, listener)
    await node.eventsStore.append('log', outgoing('x'))
    await vi.waitFor(() => expect(seen).toEqual([1]), PATIENT)
    await using manager = await managerOf(server.url)
    const stream = (await manager.streamNames()).find((name) => name.startsWith('signalbox-l-')) ?? ''
    const consumers = await manager.consumers.list(stream).next()
    expect(consumers).toHaveLength(1)
    const { config } = await manager.streams.info(stream)
    const nothing = config.subjects[0]?.replace('>', 'nothing') ?? ''
    for (const { name } of consumers) await manager.consumers.update(stream, name, { filter_subject: nothing })
    await node.eventsStore.append('log', outgoing('y'))
    await vi.waitFor(() => expect(seen).toEqual([1, 2]), { timeout: 25_000 })
    await subscription.close()
  }, 40_000)

  test('CL-6 - a subscription that is ahead of the servers ends with an error', async () => {
    const server = await startServer()
    const node = await openNode(server)
    const seen: number[] = []
    const listener = ({ sequence }: StoredEvent): void => void seen.push(sequence)
    const subscription = await node.eventsStore.subscribe('log', { from: 'first' }, {}, listener)
    for (let i = 0; i < 3; i++) await node.eventsStore.append('log', outgoing('x'))
    await vi.waitFor(() => expect(seen).toEqual([1, 2, 3]), PATIENT)
    const connection = await connect({ servers: server.url })
    const manager = await jetstreamManager(connection)
    for await (const { config } of manager.streams.list()) {
      if (!config.name.startsWith('signalbox-l-')) continue
      // As after a server that gave out sequences of its own was set right by the others.
      await manager.streams.delete(config.name)
      await manager.streams.add(config)
    }
    await connection.close()
    expect(await subscription.closed).toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    const again = await node.eventsStore.subscribe('log', { from: 'first' }, {}, listener)
    await node.eventsStore.append('log', outgoing('y'))
    await vi.waitFor(() => expect(seen).toEqual([1, 2, 3, 1]), PATIENT)
    await again.close()
  })
})
