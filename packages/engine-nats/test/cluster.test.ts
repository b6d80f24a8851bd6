import { isBrokerError } from '@signalbox/broker-core'
import { engineContract } from '@signalbox/broker-core/testing'
import type { NatsEngineProblem, NatsEngine, NatsEngineOptions } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'

import { CLIENT, outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { NatsCluster } from '@signalbox/engine-nats/testing'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { unusedPrefix } from './support/prefix.ts'

const PATIENT = { timeout: 30_000 }

/** On a busy machine three servers need seconds to agree. */
const REPLICATED_NODE = { replicas: 3, requestTimeoutMs: 15_000 }

/** What replication could get wrong, of the contract that one server keeps: the rest takes minutes on three. */
const REPLICATED = [
  'compaction - one of many concurrent first writers succeeds',
  'C5 - queues: one of several concurrent sends with the same id is stored',
  'events store - concurrent appends cause no gap, no repeat and no earlier time',
  'queues - an acked message is removed permanently',
  'queues - one of two concurrent receivers gets a message',
  'C2 - dead letters: after maxReceiveCount nacks a message moves, with tags for the reason',
  'queues - purge keeps leased messages',
  'C2 - queues: a delayed message does not delay others',
]

describe.skipIf(NATS_SERVER === undefined)('three servers', () => {
  let cluster: NatsCluster
  let shared: NatsEngine
  const opened: NatsEngine[] = []

  beforeAll(async () => {
    cluster = await NatsCluster.start()
    shared = await openNatsEngine({ servers: cluster.urls, ...REPLICATED_NODE })
  }, 60_000)

  afterAll(async () => {
    await shared.close()
    await cluster[Symbol.asyncDispose]()
  })

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((engine) => engine.close()))
  })

  async function openNode(prefix: string, more: Partial<NatsEngineOptions> = {}): Promise<NatsEngine> {
    const engine = await openNatsEngine({ servers: cluster.urls, ...REPLICATED_NODE, prefix, ...more })
    opened.push(engine)
    return engine
  }

  for (const name of REPLICATED) {
    test.concurrent(`CL-10 - replicated: ${name}`, async () => {
      const found = engineContract.find((one) => one.name === name)
      expect(found).toBeDefined()
      await found?.run({
        open: async () => ({
          engine: shared,
          restart: () => Promise.reject(new Error('none of these')),
          dispose: () => Promise.resolve(),
        }),
      })
    }, 60_000)
  }

  test('CL-17 - the start logs a warning for servers before 2.10 only', async () => {
    const problems: NatsEngineProblem[] = []
    const node = await openNode(unusedPrefix(), { onProblem: (problem) => void problems.push(problem) })
    const warnings = problems.filter(({ message }) => message.startsWith('nats-server 2.'))
    const { checks } = await node.health()
    const minor = /nats-server 2\.(\d+)/.exec(checks.map(({ detail }) => detail).join())?.[1]
    expect(minor).toBeDefined()
    expect(warnings.map(({ kind }) => kind)).toEqual(Number(minor) < 10 ? ['warning'] : [])
  }, 60_000)

  test('CL-10 - nodes that create a channel at the same time send to the same channel', async () => {
    const prefix = unusedPrefix()
    const nodes = [await openNode(prefix), await openNode(prefix), await openNode(prefix)]
    for (let round = 0; round < 2; round++) {
      const sent = await Promise.all(nodes.map((node) => node.queues.send(`q${round}`, queued('x'))))
      expect(sent.map(({ sequence }) => sequence).toSorted((a, b) => a - b)).toEqual([1, 2, 3])
    }
  }, 60_000)

  test('CL-10 - of several nodes that write a key at the same time, exactly one succeeds', async () => {
    const prefix = unusedPrefix()
    const nodes = [await openNode(prefix), await openNode(prefix), await openNode(prefix)]
    await nodes[0]?.channels.create('events_store', 'log', { compacted: true })
    await vi.waitFor(async () => {
      for (const node of nodes) expect(await node.channels.info('events_store', 'log')).toBeDefined()
    }, PATIENT)
    let last = 0
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.allSettled(
        nodes.map((node) => node.eventsStore.append('log', { ...outgoing('x'), key: 'k', expectLastOfKey: last })),
      )
      const first = outcomes.filter((outcome) => outcome.status === 'fulfilled')
      const others = outcomes.filter((outcome) => outcome.status === 'rejected')
      expect(first).toHaveLength(1)
      expect(others.every(({ reason }) => isBrokerError(reason, 'CONFLICT'))).toBe(true)
      last = first[0]?.value.sequence ?? 0
    }
  }, 60_000)

  test('CL-10 - one server of three may crash: no acknowledged message is lost, and calls continue', async () => {
    const prefix = unusedPrefix()
    const node = await openNode(prefix, { requestTimeoutMs: 3_000 })
    const accepted = new Set<string>()
    const done = new AbortController()
    const producing = (async () => {
      for (let i = 0; !done.signal.aborted; i++) {
        await node.queues.send('q', queued(`${i}`)).then(
          () => accepted.add(`${i}`),
          () => undefined,
        )
      }
    })()
    await vi.waitFor(() => expect(accepted.size).toBeGreaterThan(20), PATIENT)
    const [server] = cluster.servers
    await server?.kill()
    const down = accepted.size
    await vi.waitFor(() => expect(accepted.size).toBeGreaterThan(down + 20), PATIENT)
    await server?.start()
    done.abort()
    await producing
    const kept = new Set<string>()
    await vi.waitFor(
      async () => {
        const deliveries = await node.queues.receive('q', { ...RECEIVE, maxMessages: 100, waitMs: 500 })
        for (const { message } of deliveries) kept.add(text(message))
        const receipts = deliveries.map(({ receipt }) => receipt)
        await node.queues.ack(receipts, CLIENT)
        expect([...accepted].filter((body) => !kept.has(body))).toEqual([])
      },
      { timeout: 60_000, interval: 1 },
    )
  }, 180_000)

  test('CL-8 - a node that starts with fewer servers than replicas reports it, and waits for them', async () => {
    const problems: NatsEngineProblem[] = []
    const leaving = new AbortController()
    const opening = openNode(unusedPrefix(), {
      replicas: 5,
      // Servers without a leader do not answer: it asks again.
      requestTimeoutMs: 2_000,
      onProblem: (problem) => problems.push(problem),
      signal: leaving.signal,
    })
    const waits = {
      kind: 'disconnected',
      message: expect.stringMatching(/as many servers as there are replicas; waiting$/),
    }
    await vi.waitFor(() => expect(problems).toContainEqual(expect.objectContaining(waits)), PATIENT)
    leaving.abort(new Error('stopped'))
    await expect(opening).rejects.toThrow('stopped')
  })

  test('CL-6 - a node that reconnects before the servers have a leader reads the channels when they have one', async () => {
    const prefix = unusedPrefix()
    const problems: string[] = []
    const node = await openNode(prefix, {
      requestTimeoutMs: 1_000,
      onProblem: ({ message }) => problems.push(message),
    })
    const other = await openNode(prefix, { requestTimeoutMs: 1_000 })
    await Promise.all(cluster.servers.map((server) => server.kill()))
    const [first, ...rest] = cluster.servers
    await first?.start()
    await vi.waitFor(() => expect(problems.join('\n')).toMatch(/reading the channels again/), PATIENT)
    await Promise.all(rest.map((server) => server.start()))
    await vi.waitFor(() => other.channels.create('queues', 'new'), { timeout: 60_000, interval: 500 })
    await vi.waitFor(async () => expect(await node.channels.info('queues', 'new')).toBeDefined(), PATIENT)
  }, 180_000)
})
