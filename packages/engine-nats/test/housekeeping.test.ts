import type { EngineProblem } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, test, vi } from 'vitest'

import { outgoing, queued, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 10_000 }

describe.skipIf(NATS_SERVER === undefined)('housekeeping', () => {
  test('compaction - a tombstone goes an hour after it was written, and its key begins anew', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.channels.create('events_store', 'log', { compacted: true })
    await node.logs.append('log', { ...outgoing('x'), key: 'gone' })
    await node.logs.append('log', { ...outgoing(''), key: 'gone', tombstone: true })
    await node.logs.append('log', { ...outgoing(''), key: 'back', tombstone: true })
    await node.logs.append('log', { ...outgoing('again'), key: 'back' })
    await node.logs.tombstones.sweep(Date.now() + 59 * 60_000)
    expect((await node.logs.getLast('log', 'gone'))?.tombstone).toBe(true)
    await node.logs.tombstones.sweep(Date.now() + 61 * 60_000)
    expect(await node.logs.getLast('log', 'gone')).toBeUndefined()
    const last = await node.logs.getLast('log', 'back')
    expect(last && text(last)).toBe('again')
    const { sequence } = await node.logs.append('log', { ...outgoing('anew'), key: 'gone', expectLastOfKey: 0 })
    expect(sequence).toBe(5)
  })

  test('options - limits that were changed hold for channels that there are already', async () => {
    const server = await startServer()
    const before = await openNode(server)
    await before.queues.send('q', queued('x'))
    await before.close()
    const after = await openNode(server, { queueMaxMessages: 1 })
    await vi.waitFor(async () => {
      await expect(after.queues.send('q', queued('y'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    }, PATIENT)
  })

  test('options - a message over the servers’ max_payload is MESSAGE_TOO_LARGE, and the start warns', async () => {
    const server = await startServer()
    const problems: EngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    expect(node.limits.maxMessageBytes).toBe(16 * 1024 * 1024 - 4_096)
    expect(problems.map(({ kind, message }) => `${kind}: ${message}`).join('\n')).toMatch(/warning: .*max_payload/)
    const tooLarge = queued('x'.repeat(16 * 1024 * 1024))
    const refused = { code: 'MESSAGE_TOO_LARGE' }
    await expect(node.queues.send('q', tooLarge)).rejects.toMatchObject(refused)
    await expect(node.queues.sendBatch('q', [queued('x'), tooLarge])).rejects.toMatchObject(refused)
    await expect(node.logs.append('l', tooLarge)).rejects.toMatchObject(refused)
    await expect(node.topics.publish('t', tooLarge)).rejects.toMatchObject(refused)
    const request = node.requests.request('queries', 'r', tooLarge, { timeoutMs: 1_000 })
    await expect(request).rejects.toMatchObject(refused)
    expect(await node.channels.list()).toEqual([])
  })

  test('start - without JetStream, or with more replicas than servers, it says what is missing', async () => {
    const without = await startServer({ jetstream: false })
    const refused = openNatsEngine({ servers: [without.url], waitForServers: false, requestTimeoutMs: 500 })
    await expect(refused).rejects.toMatchObject({ code: 'JETSTREAM_MISSING' })
    const problems: EngineProblem[] = []
    const leaving = new AbortController()
    const waiting = openNatsEngine({
      servers: [without.url],
      signal: leaving.signal,
      requestTimeoutMs: 500,
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

  test('streams - nothing is left of a deleted channel', async () => {
    const server = await startServer()
    const node = await openNode(server)
    await node.queues.send('q', queued('x'))
    await node.logs.append('l', outgoing('x'))
    await node.channels.delete('queues', 'q')
    await node.channels.delete('events_store', 'l')
    const connection = await connect({ servers: server.url })
    const manager = await jetstreamManager(connection)
    const names: string[] = []
    for await (const { config } of manager.streams.list()) names.push(config.name)
    await connection.close()
    expect(names.toSorted()).toEqual(['KV_signalbox-channels', 'signalbox-notes', 'signalbox-recent'])
  })
})
