import type { Reply, Subscription } from '@signalbox/broker-core'
import type { NatsEngine } from '@signalbox/engine-nats'
import { encodeText } from '@signalbox/broker-core'
import { describe, expect, test, vi } from 'vitest'

import { CLIENT, outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { cuttable } from './support/cuttable.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }

/** Appends ten entries. */
async function publish(node: NatsEngine, first: number): Promise<void> {
  for (let n = first; n < first + 10; n++) await node.eventsStore.append('s', outgoing(String(n)))
}

function joinGroup(node: NatsEngine, group: string): Promise<Subscription> {
  return node.eventsStore.subscribe('s', { from: 'first' }, { group, durable: true }, () => {})
}

function reply(body: string): Reply {
  return { executed: true, error: '', body: encodeText(body), metadata: '', tags: {} }
}

describe.skipIf(NATS_SERVER === undefined)('several nodes', () => {
  test('CL-1 - a queue is one queue on every node', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    await one.queues.send('q', queued('from one'))
    await vi.waitFor(async () => expect(await two.channels.info('queues', 'q')).toBeDefined(), PATIENT)
    await two.queues.send('q', queued('from two'))
    const [first] = await two.queues.receive('q', RECEIVE)
    const [second] = await one.queues.receive('q', RECEIVE)
    expect([first, second].map((delivery) => delivery && text(delivery.message))).toEqual(['from one', 'from two'])
  })

  test('CL-8 - nodes that start at once on empty servers all start', async () => {
    const server = await startServer()
    for (let round = 0; round < 12; round++) {
      const starting = Array.from({ length: 6 }, () => openNode(server, { prefix: `round-${round}` }))
      const nodes = await Promise.all(starting)
      expect(await Promise.all(nodes.map((node) => node.health()))).toMatchObject(nodes.map(() => ({ ok: true })))
      await Promise.all(nodes.map((node) => node.close()))
    }
  })

  test('limits - two nodes exceed the limit of durable groups by one at most', async () => {
    const server = await startServer()
    const options = { maxDurableGroups: 3 }
    const [one, two] = [await openNode(server, options), await openNode(server, options)]
    await publish(one, 1)
    await vi.waitFor(async () => expect(await two.channels.info('events_store', 's')).toBeDefined(), PATIENT)
    await Promise.all([joinGroup(one, 'first'), joinGroup(two, 'second')])
    const late = Array.from({ length: 20 }, (_, index) => joinGroup(index % 2 === 0 ? one : two, `late-${index}`))
    const settled = await Promise.allSettled(late)
    const made = settled.filter(({ status }) => status === 'fulfilled').length
    expect(made).toBeGreaterThanOrEqual(1)
    expect(made).toBeLessThanOrEqual(2)
    const refusals = settled.filter((outcome) => outcome.status === 'rejected').map(({ reason }): unknown => reason)
    expect(refusals).toMatchObject(refusals.map(() => ({ code: 'GROUP_LIMIT' })))
  })

  test('CL-1 - a receive that waits on one node for a queue that another one creates is served', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const waiting = two.queues.receive('not-yet', RECEIVE)
    await one.queues.send('not-yet', queued('x'))
    expect((await waiting).map(({ message }) => text(message))).toEqual(['x'])
  })

  test('CL-1 - the subscribers of a durable group on several nodes share its position, which outlives the nodes', async () => {
    const server = await startServer()
    const taken: string[] = []
    const join = (node: NatsEngine) =>
      node.eventsStore.subscribe('s', { from: 'first' }, { group: 'g', durable: true }, (entry) => {
        taken.push(text(entry))
      })
    const [one, two] = [await openNode(server), await openNode(server)]
    await Promise.all([join(one), join(two)])
    await publish(one, 0)
    await vi.waitFor(() => expect(taken).toHaveLength(10), PATIENT)
    await one.close()
    await publish(two, 10)
    await vi.waitFor(() => expect(taken).toHaveLength(20), PATIENT)
    await two.close()
    const three = await openNode(server)
    await publish(three, 20)
    await join(three)
    await vi.waitFor(() => expect(taken).toHaveLength(30), PATIENT)
    expect(taken.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, i) => i))
  })

  test('CL-1 - subscribers that create a group on several nodes at once, with different starts, all join it', async () => {
    const server = await startServer()
    const nodes = [await openNode(server), await openNode(server), await openNode(server)]
    await publish(nodes[0]!, 0)
    for (const durable of [true, false]) {
      for (let round = 0; round < 10; round++) {
        const options = { group: `g${round}`, durable }
        const joined = nodes.map((node, i) =>
          node.eventsStore.subscribe('s', { from: 'sequence', sequence: i + 1 }, options, () => {}),
        )
        expect(await Promise.all(joined)).toHaveLength(3)
      }
    }
  })

  test('CL-3 - a lease is settled at any node, once', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (const body of ['acked', 'nacked']) await one.queues.send('q', queued(body))
    const [acked, nacked] = await one.queues.receive('q', { ...RECEIVE, maxMessages: 2 })
    const [a, n] = [acked?.receipt ?? '', nacked?.receipt ?? '']
    expect(await two.queues.ack([a], 'somebody else')).toEqual({ settled: 0, lost: [a] })
    expect(await two.queues.extend([a, n], CLIENT, 30_000)).toEqual({ settled: 2, lost: [] })
    expect(await two.queues.ack([a], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await one.queues.ack([a], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await one.queues.nack([a], CLIENT)).toEqual({ settled: 0, lost: [a] })
    expect(await two.queues.nack([n], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await two.queues.ack([n], CLIENT)).toEqual({ settled: 0, lost: [n] })
    const [again] = await two.queues.receive('q', RECEIVE)
    expect([again?.message.receiveCount, again && text(again.message)]).toEqual([2, 'nacked'])
  })

  test('CL-3 - a nack with a delay, and a reject, are settled at any node', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (const body of ['delayed', 'rejected']) await one.queues.send('q', queued(body, { deadLetterQueue: 'dead' }))
    await one.queues.send('q', queued('kept'))
    const deliveries = await one.queues.receive('q', { ...RECEIVE, maxMessages: 3 })
    const [delayed = '', rejected = '', kept = ''] = deliveries.map(({ receipt }) => receipt)
    await expect(two.queues.nack([rejected, kept], CLIENT, { reject: true })).rejects.toMatchObject({
      code: 'NO_DEAD_LETTER_QUEUE',
    })
    const since = performance.now()
    expect(await two.queues.nack([delayed], CLIENT, { delayMs: 5_000 })).toEqual({ settled: 1, lost: [] })
    expect(await two.queues.nack([rejected], CLIENT, { reject: true })).toEqual({ settled: 1, lost: [] })
    await vi.waitFor(async () => {
      const { queue } = (await two.channels.info('queues', 'q')) ?? {}
      expect([queue?.waiting, queue?.delayed, queue?.inFlight]).toEqual([0, 1, 1])
    }, PATIENT)
    expect(await two.queues.ack([kept], CLIENT)).toEqual({ settled: 1, lost: [] })
    const [dead] = await two.queues.receive('dead', RECEIVE)
    expect(dead?.message.tags).toMatchObject({ dlq_source: 'q', dlq_reason: 'rejected', dlq_receive_count: '1' })
    const [again] = await two.queues.receive('q', RECEIVE)
    expect([again?.message.receiveCount, again && text(again.message)]).toEqual([2, 'delayed'])
    expect(performance.now() - since).toBeGreaterThan(4_980)
  })

  test('CL-3 - a reject whose dead-letter queue is full is refused at any node, and the lease continues', async () => {
    const server = await startServer()
    const options = { queueMaxMessages: 1 }
    const [one, two] = [await openNode(server, options), await openNode(server, options)]
    await one.queues.send('q', queued('x', { deadLetterQueue: 'dead' }))
    await one.queues.send('dead', queued('in the way'))
    const [delivery] = await one.queues.receive('q', RECEIVE)
    const receipts = [delivery?.receipt ?? '']
    for (const node of [one, two]) {
      await expect(node.queues.nack(receipts, CLIENT, { reject: true })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    }
    expect(await two.queues.ack(receipts, CLIENT)).toEqual({ settled: 1, lost: [] })
  })

  test('CL-3 - another node settles the lease of a dead node', async () => {
    const server = await startServer()
    const [one, two, three] = [await openNode(server), await openNode(server), await openNode(server)]
    for (const body of ['a', 'b', 'c']) await one.queues.send('q', queued(body))
    const deliveries = await one.queues.receive('q', { ...RECEIVE, maxMessages: 3 })
    const [a = '', b = '', c = ''] = deliveries.map(({ receipt }) => receipt)
    await one.close()
    expect(await two.queues.ack([a], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await three.queues.ack([a], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await three.queues.nack([a], CLIENT)).toEqual({ settled: 0, lost: [a] })
    expect(await three.queues.nack([b], CLIENT)).toEqual({ settled: 1, lost: [] })
    expect(await two.queues.ack([b], CLIENT)).toEqual({ settled: 0, lost: [b] })
    const [again] = await two.queues.receive('q', RECEIVE)
    expect([again?.message.receiveCount, again && text(again.message)]).toEqual([2, 'b'])
    expect(await two.queues.extend([c], CLIENT, 300)).toEqual({ settled: 1, lost: [] })
    const [lapsed] = await three.queues.receive('q', RECEIVE)
    expect([lapsed?.message.receiveCount, lapsed && text(lapsed.message)]).toEqual([2, 'c'])
  })

  test('CL-3 - a long lease outlives its node, and ends in its time', async () => {
    const server = await startServer()
    const one = await openNode(server, { ackWaitMs: 1_000 })
    const two = await openNode(server, { ackWaitMs: 1_000 })
    await one.queues.send('q', queued('x'))
    await one.queues.receive('q', { ...RECEIVE, leaseMs: 6_000 })
    await one.close()
    expect(await two.queues.receive('q', { ...RECEIVE, waitMs: 2_000 })).toEqual([])
    const [again] = await two.queues.receive('q', RECEIVE)
    expect(again?.message.receiveCount).toBe(2)
  })

  test('CL-2 - purge keeps the messages that another node leases', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (const body of ['kept', 'gone', 'gone too']) await one.queues.send('q', queued(body))
    const [kept] = await one.queues.receive('q', RECEIVE)
    await vi.waitFor(async () => expect((await two.channels.info('queues', 'q'))?.queue?.inFlight).toBe(1), PATIENT)
    expect(await two.queues.purge('q')).toBe(2)
    expect(await one.queues.ack([kept?.receipt ?? ''], CLIENT)).toEqual({ settled: 1, lost: [] })
  })

  test('CL-2 - counters, gauges and subscribers include all nodes', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (const body of ['a', 'b', 'c']) await one.queues.send('q', queued(body))
    await vi.waitFor(async () => expect(await two.channels.info('queues', 'q')).toBeDefined(), PATIENT)
    await one.queues.receive('q', RECEIVE)
    await two.queues.receive('q', RECEIVE)
    for (const node of [one, two]) {
      await node.events.subscribe('news', {}, () => {})
      await vi.waitFor(async () => {
        const { outgoing: delivered, queue } = (await node.channels.info('queues', 'q')) ?? {}
        expect([delivered, queue?.waiting, queue?.inFlight]).toEqual([2, 1, 2])
      }, PATIENT)
    }
    await vi.waitFor(async () => expect((await one.channels.info('events', 'news'))?.subscribers).toBe(2), PATIENT)
    await two.close()
    await vi.waitFor(async () => {
      expect((await one.channels.info('events', 'news'))?.subscribers).toBe(1)
      expect((await one.channels.info('queues', 'q'))?.outgoing).toBe(2)
    }, PATIENT)
  })

  test('CL-1 - every node knows the channels of every type, also a node that joins later', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    for (const type of ['queues', 'events', 'events_store', 'commands', 'queries'] as const) {
      await one.channels.create(type, `a ${type}`)
    }
    const names = async (node: typeof one) => (await node.channels.list()).map(({ type, name }) => [type, name])
    const expected = await names(one)
    expect(expected).toHaveLength(5)
    const three = await openNode(server)
    await vi.waitFor(async () => expect([await names(two), await names(three)]).toEqual([expected, expected]), PATIENT)
    await two.channels.delete('events', 'a events')
    await three.channels.delete('queues', 'a queues')
    await vi.waitFor(async () => expect(await names(one)).toHaveLength(3), PATIENT)
  })

  test('events - a subscriber on one node gets the events published at another, in order', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const seen: string[] = []
    await two.events.subscribe('news.*', {}, (event) => seen.push(text(event)))
    const bodies = Array.from({ length: 200 }, (_, i) => `${i}`)
    for (const body of bodies) await one.events.publish('news.today', outgoing(body))
    await vi.waitFor(() => expect(seen).toEqual(bodies), PATIENT)
  })

  test('events - members of a group on different nodes share', async () => {
    const server = await startServer()
    const nodes = [await openNode(server), await openNode(server)]
    const seen: string[] = []
    for (const node of nodes) await node.events.subscribe('news', { group: 'g' }, (event) => seen.push(text(event)))
    for (let i = 0; i < 50; i++) await nodes[0]?.events.publish('news', outgoing(`${i}`))
    await vi.waitFor(() => expect(seen).toHaveLength(50), PATIENT)
    expect(new Set(seen).size).toBe(50)
  })

  test('events stores - members of a group on different nodes share one position', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const seen: number[] = []
    const listen = ({ sequence }: { sequence: number }) => void seen.push(sequence)
    const first = await one.eventsStore.subscribe('log', { from: 'first' }, { group: 'g' }, listen)
    await vi.waitFor(async () => expect(await two.channels.info('events_store', 'log')).toBeDefined(), PATIENT)
    const second = await two.eventsStore.subscribe('log', { from: 'first' }, { group: 'g' }, listen)
    for (let i = 0; i < 20; i++) await one.eventsStore.append('log', outgoing(`${i}`))
    await vi.waitFor(() => expect(seen).toHaveLength(20), PATIENT)
    await first.close()
    await one.eventsStore.append('log', outgoing('for the second'))
    const all = Array.from({ length: 21 }, (_, i) => i + 1)
    await vi.waitFor(() => expect(seen.toSorted((a, b) => a - b)).toEqual(all), PATIENT)
    await second.close()
    await two.eventsStore.subscribe('log', { from: 'first' }, { group: 'g' }, listen)
    await vi.waitFor(() => expect(seen).toHaveLength(42), PATIENT)
  })

  test('M11 - requests: a request on one node waits for a subscriber on another, and is aborted there', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const request = one.requests.request('queries', 'q', outgoing('x'), { timeoutMs: 10_000 })
    await two.requests.serve('queries', 'q', {}, async (message) => reply(`answer to ${text(message)}`))
    expect(text(await request)).toBe('answer to x')
    const seen: AbortSignal[] = []
    await two.requests.serve('queries', 'silent', {}, ({ signal }) => {
      seen.push(signal)
      return new Promise(() => {})
    })
    const leaving = new AbortController()
    const aborted = one.requests.request('queries', 'silent', outgoing('x'), {
      timeoutMs: 60_000,
      signal: leaving.signal,
    })
    await vi.waitFor(() => expect(seen).toHaveLength(1), PATIENT)
    leaving.abort(new Error('gone'))
    await expect(aborted).rejects.toThrow('gone')
    await vi.waitFor(() => expect(seen[0]?.aborted).toBe(true), PATIENT)
  })

  test('C4 - two nodes that create a channel at the same time create one channel', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? one : two).queues.send('same', queued(`${i}`))),
    )
    const sequences = results.map(({ sequence }) => sequence).toSorted((a, b) => a - b)
    expect(sequences).toEqual(Array.from({ length: 10 }, (_, i) => i + 1))
  })

  test('CL-4 - receipts of another broker and forged receipts are lost', async () => {
    const server = await startServer()
    const [one, other] = [await openNode(server), await openNode(server, { prefix: 'other' })]
    await one.queues.send('q', queued('x'))
    const [delivery] = await one.queues.receive('q', RECEIVE)
    const receipt = delivery?.receipt ?? ''
    expect(await other.queues.ack([receipt], CLIENT)).toEqual({ settled: 0, lost: [receipt] })
    const bytes = Buffer.from(receipt, 'base64url')
    const text_ = bytes.subarray(16).toString().replace(CLIENT, 'attacker')
    const forged = Buffer.concat([bytes.subarray(0, 16), Buffer.from(text_)]).toString('base64url')
    const two = await openNode(server)
    expect(await two.queues.ack([forged], 'attacker')).toEqual({ settled: 0, lost: [forged] })
    expect(await one.queues.ack([receipt], CLIENT)).toEqual({ settled: 1, lost: [] })
  })

  test('requests - a request for existing subscribers only is refused at once, when all nodes have reported', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    const only = { timeoutMs: 20_000, onlyIfSubscribed: true }
    const started = performance.now()
    const made = Array.from({ length: 20 }, (_, i) => one.requests.request('queries', `q${i}`, outgoing('x'), only))
    for (const request of made) await expect(request).rejects.toMatchObject({ code: 'NO_SUBSCRIBER' })
    // Without the reports they would wait for subscribers until their time-out.
    expect(performance.now() - started).toBeLessThan(15_000)
    expect([...(await one.channels.list()), ...(await two.channels.list())]).toEqual([])
    await two.requests.serve('queries', 'q0', {}, async () => reply('there'))
    expect(text(await one.requests.request('queries', 'q0', outgoing('x'), only))).toBe('there')
  })

  test('requests - a request for existing subscribers only waits for a node that is cut off', async () => {
    const server = await startServer()
    const network = await cuttable(server.url)
    const [one, two] = [await openNode(server), await openNode(server, { servers: [network.url] })]
    await two.requests.serve('queries', 'q', {}, async () => reply('back again'))
    network.cut()
    await vi.waitFor(async () => expect((await two.health()).ok).toBe(false), PATIENT)
    const request = one.requests.request('queries', 'q', outgoing('x'), { timeoutMs: 20_000, onlyIfSubscribed: true })
    setTimeout(() => network.restore(), 1_500)
    expect(text(await request)).toBe('back again')
  })
})
