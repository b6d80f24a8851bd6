import { isBrokerError } from '@signalbox/broker-core'
import type { StoredEvent } from '@signalbox/broker-core'
import type { NatsEngineProblem } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { connect } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'

import { describe, expect, test, vi } from 'vitest'

import { CLIENT, outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const QUICK = { patienceMs: 200, requestTimeoutMs: 2_000 }

async function codeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call
  } catch (error) {
    return isBrokerError(error) ? error.code : error
  }
}

function sequencesInto(into: number[]): (entry: StoredEvent) => void {
  return ({ sequence }) => void into.push(sequence)
}

describe.skipIf(NATS_SERVER === undefined)('connection loss', () => {
  test('CL-5 - without a server calls fail within seconds, health names the cause, and both recover', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { ...QUICK, onProblem: (problem) => problems.push(problem) })
    await node.queues.send('q', queued('before'))
    await server.kill()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(false), PATIENT)
    const started = performance.now()
    const calls = [
      node.queues.send('q', queued('x')),
      node.queues.receive('q', RECEIVE),
      node.eventsStore.append('l', outgoing('x')),
      node.events.publish('t', outgoing('x')),
      node.events.subscribe('t', {}, () => {}),
      node.requests.request('queries', 'r', outgoing('x'), { timeoutMs: 60_000 }),
      node.channels.list(),
      node.channels.create('queues', 'new'),
    ]
    expect(new Set(await Promise.all(calls.map(codeOf)))).toEqual(new Set(['ENGINE_UNAVAILABLE']))
    // Sooner than any of them would end by itself.
    expect(performance.now() - started).toBeLessThan(9_000)
    await server.start()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    const [delivery] = await node.queues.receive('q', RECEIVE)
    expect(delivery && text(delivery.message)).toBe('before')
    expect(problems.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['disconnected', 'healed']))
  })

  test('CL-6 - a node reads the channels once after it reconnects', async () => {
    const server = await startServer()
    const node = await openNode(server, QUICK)
    await node.queues.send('q', queued('x'))
    await server.kill()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(false), PATIENT)
    await server.start()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    const connection = await connect({ servers: server.url })
    const readers: string[] = []
    connection.subscribe('$JS.EVENT.ADVISORY.CONSUMER.CREATED.KV_signalbox-channels.>', {
      callback: (_error, { subject }) => void readers.push(subject),
    })
    await connection.flush()
    // Read again at each end of what was followed before, it was some hundred times a second.
    await pause(1_000)
    await connection.close()
    expect(readers.length).toBeLessThanOrEqual(2)
  })

  test('CL-5 - calls to a frozen server fail, and succeed again when it continues', async () => {
    const server = await startServer()
    const node = await openNode(server, QUICK)
    await node.queues.send('q', queued('x'))
    server.pause()
    // A signal takes its moment.
    await vi.waitFor(async () => {
      expect(await codeOf(node.queues.send('q', queued('y')))).toBe('ENGINE_UNAVAILABLE')
    }, PATIENT)
    expect((await node.health()).ok).toBe(false)
    server.resume()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    await node.queues.send('q', queued('z'))
    const [delivery] = await node.queues.receive('q', RECEIVE)
    expect(delivery && text(delivery.message)).toBe('x')
  })

  test('CL-5 - the node leaves a frozen server within seconds, and continues at another one', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    await openNode(server, { onProblem: (problem) => problems.push(problem) })
    const heard = performance.now()
    server.pause()
    await vi.waitFor(() => expect(problems.map(({ kind }) => kind)).toContain('disconnected'), PATIENT)
    expect(performance.now() - heard).toBeLessThan(15_000)
    server.resume()
    await vi.waitFor(() => expect(problems.map(({ kind }) => kind)).toContain('healed'), PATIENT)
  })

  test('CL-6 - waits and subscriptions continue automatically after a crash of the server', async () => {
    const server = await startServer()
    const node = await openNode(server, QUICK)
    await node.channels.create('queues', 'q')
    await node.eventsStore.append('log', outgoing('first'))
    const events: string[] = []
    const entries: number[] = []
    const shared: number[] = []
    await node.events.subscribe('news', {}, (event) => events.push(text(event)))
    await node.eventsStore.subscribe('log', { from: 'first' }, {}, sequencesInto(entries))
    await node.eventsStore.subscribe('log', { from: 'first' }, { group: 'g' }, sequencesInto(shared))
    await node.requests.serve('queries', 'r', {}, async (request) => ({
      executed: true,
      error: '',
      body: request.body,
      metadata: '',
      tags: {},
    }))
    const waiting = node.queues.receive('q', { ...RECEIVE, waitMs: 60_000 })
    await vi.waitFor(() => expect([entries, shared]).toEqual([[1], [1]]), PATIENT)
    await server.kill()
    // Longer than a call waits: who waited before goes on waiting.
    await pause(3 * QUICK.patienceMs)
    await server.start()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    await node.queues.send('q', queued('after'))
    await node.eventsStore.append('log', outgoing('second'))
    await node.events.publish('news', outgoing('after'))
    expect((await waiting).map(({ message }) => text(message))).toEqual(['after'])
    expect(text(await node.requests.request('queries', 'r', outgoing('x'), { timeoutMs: 10_000 }))).toBe('x')
    await vi.waitFor(() => expect([entries, events]).toEqual([[1, 2], ['after']]), PATIENT)
    // A server that crashes may forget the last acks: at least once, then.
    await vi.waitFor(() => expect(new Set(shared)).toEqual(new Set([1, 2])), PATIENT)
  })

  test('CL-6 - a lease granted before a crash of the server is settled after it', async () => {
    const server = await startServer()
    const node = await openNode(server, QUICK)
    for (const body of ['acked', 'nacked']) await node.queues.send('q', queued(body))
    const deliveries = await node.queues.receive('q', { ...RECEIVE, maxMessages: 2 })
    const [acked = '', nacked = ''] = deliveries.map(({ receipt }) => receipt)
    await server.kill()
    expect(await codeOf(node.queues.ack([acked], CLIENT))).toBe('ENGINE_UNAVAILABLE')
    await server.start()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    expect(await node.queues.ack([acked], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await node.queues.nack([nacked], CLIENT)).toEqual({ settled: 1, lost: [] })
    const [again] = await node.queues.receive('q', RECEIVE)
    expect(again && text(again.message)).toBe('nacked')
    // The count of the delivery before the crash may be forgotten (seen once, on 2.15.1); it is never counted twice.
    expect([1, 2]).toContain(again?.message.receiveCount)
    expect(await node.queues.receive('q', { ...RECEIVE, waitMs: 300 })).toEqual([])
  })

  test('CL-7 - nothing acknowledged is lost while the server crashes again and again', async () => {
    const server = await startServer()
    const node = await openNode(server, QUICK)
    const accepted = new Set<string>()
    const storedEvent = new Set<string>()
    const done = new AbortController()
    const produce = async (worker: number): Promise<void> => {
      for (let i = 0; !done.signal.aborted; i++) {
        const body = `${worker}-${i}`
        const [sent, appended] = await Promise.allSettled([
          node.queues.send('q', queued(body)),
          node.eventsStore.append('log', outgoing(body)),
        ])
        if (sent.status === 'fulfilled') accepted.add(body)
        if (appended.status === 'fulfilled') storedEvent.add(body)
      }
    }
    const producers = [1, 2, 3, 4].map(produce)
    for (let round = 0; round < 3; round++) {
      const before = accepted.size
      await vi.waitFor(() => expect(accepted.size).toBeGreaterThan(before + 20), PATIENT)
      await server.kill()
      await server.start()
    }
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    done.abort()
    await Promise.all(producers)
    const kept = new Map<string, number>()
    for (;;) {
      const deliveries = await node.queues.receive('q', { ...RECEIVE, maxMessages: 100, waitMs: 500 })
      if (deliveries.length === 0) break
      for (const { message } of deliveries) kept.set(text(message), (kept.get(text(message)) ?? 0) + 1)
      await node.queues.ack(
        deliveries.map(({ receipt }) => receipt),
        CLIENT,
      )
    }
    expect([...accepted].filter((body) => !kept.has(body))).toEqual([])
    expect([...kept.values()].filter((times) => times > 1)).toEqual([])
    const entries = new Set<string>()
    for (let from = 1; ;) {
      const page = await node.eventsStore.read('log', { fromSequence: from, maxMessages: 500 })
      for (const entry of page) entries.add(text(entry))
      const last = page.at(-1)
      if (!last) break
      from = last.sequence + 1
    }
    expect([...storedEvent].filter((body) => !entries.has(body))).toEqual([])
  })

  test('CL-8 - a node that starts while NATS is down reports it, waits, and is ready when NATS returns', async () => {
    const server = await startServer()
    await server.stop()
    const problems: NatsEngineProblem[] = []
    const opening = openNode(server, { onProblem: (problem) => problems.push(problem) })
    await vi.waitFor(() => expect(problems.map(({ kind }) => kind)).toEqual(['disconnected']), PATIENT)
    await server.start()
    const node = await opening
    await node.queues.send('q', queued('x'))
    expect(problems.map(({ kind }) => kind).slice(0, 2)).toEqual(['disconnected', 'healed'])
  })

  test('CL-8 - a node that may not wait for the servers fails to start, and a wait can be aborted', async () => {
    const server = await startServer()
    await server.stop()
    await expect(openNatsEngine({ servers: [server.url], waitForServers: false })).rejects.toMatchObject({
      code: 'SERVERS_UNREACHABLE',
    })
    const leaving = new AbortController()
    const opening = openNatsEngine({ servers: [server.url], signal: leaving.signal })
    leaving.abort(new Error('stopped'))
    await expect(opening).rejects.toThrow('stopped')
  })
})
