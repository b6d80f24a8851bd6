import type { NatsEngine, NatsEngineProblem } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test, vi } from 'vitest'

import type { Delivery } from '../src/queues/deliveries.ts'
import { toRecord } from '../src/queues/queue-sender.ts'
import { WaitingLine, WaitingReceiver } from '../src/queues/queue.ts'
import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

function delivery(sequence: number): Delivery {
  const options = { compacted: false, maxAgeMs: -1, maxBytes: -1 }
  return {
    channel: { type: 'queues', name: 'q', incarnation: 'i', stream: 's', options, revision: 1 },
    record: toRecord(queued('x'), Date.now()),
    sequence,
    delivery: sequence,
    ackSubject: '',
    timestamp: Date.now(),
    receiveCount: 1,
    uncounted: 0,
    recorded: false,
    size: 1,
    arrivedAt: Date.now(),
  }
}

function lineInto(returned: number[]): WaitingLine {
  return new WaitingLine(
    async ({ sequence }) => void returned.push(sequence),
    (work) => void work,
  )
}

function sequences(deliveries: readonly Delivery[]): number[] {
  return deliveries.map(({ sequence }) => sequence)
}

test('queues - a waiting line delivers messages in order of arrival, one to each receiver', () => {
  const line = lineInto([])
  const [first, second] = [new WaitingReceiver(), new WaitingReceiver()]
  line.join(first)
  line.join(second)
  line.join(first)
  for (const sequence of [3, 2, 1]) line.offer(delivery(sequence))
  expect([sequences(first.take()), sequences(second.take())]).toEqual([[3], [2]])
  expect(sequences(line.takeStash())).toEqual([1])
})

test('queues - a message that its receiver does not accept is offered to the next receiver, or returns to the queue', async () => {
  const returned: number[] = []
  const line = lineInto(returned)
  const [first, second] = [new WaitingReceiver(), new WaitingReceiver()]
  line.join(first)
  line.offer(delivery(1))
  line.join(second)
  line.leave(first)
  await second.arrival
  expect(sequences(second.take())).toEqual([1])
  line.offer(delivery(2))
  line.leave(second)
  await line.returnStash()
  expect(returned).toEqual([2])
})

test('queues - no receiver gets a message of a closing queue', async () => {
  const returned: number[] = []
  const line = lineInto(returned)
  const receiver = new WaitingReceiver()
  line.join(receiver)
  line.close()
  line.offer(delivery(1))
  expect(receiver.waits).toBe(true)
  await line.returnStash()
  expect(returned).toEqual([1])
})

const PATIENT = { timeout: 20_000 }
const ONCE = { maxReceiveCount: 1, deadLetterQueue: 'dead' }

describe.skipIf(NATS_SERVER === undefined)('receive counts', () => {
  test('C2 - a delayed message that may be received once is delivered, however often it came early', async () => {
    const server = await startServer()
    const one = await openNode(server, { ackWaitMs: 1_000 })
    await one.queues.send('q', queued('x', { delayMs: 3_000, ...ONCE }))
    expect(await one.queues.receive('q', { ...RECEIVE, waitMs: 200 })).toEqual([])
    const [delivery] = await one.queues.receive('q', RECEIVE)
    expect(delivery?.message.receiveCount).toBe(1)
    expect(await one.queues.nack([delivery?.receipt ?? ''], CLIENT)).toEqual({ settled: 1, lost: [] })
    const [dead] = await one.queues.receive('dead', RECEIVE)
    expect(dead?.message.tags['dlq_receive_count']).toBe('1')
  })

  test('C2 - a delayed message without an early receive counts its receives from one', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    await one.queues.send('q', queued('x', { delayMs: 200, maxReceiveCount: 2, deadLetterQueue: 'dead' }))
    await vi.waitFor(async () => {
      expect((await one.channels.info('queues', 'q'))?.queue?.waiting).toBe(1)
    }, PATIENT)
    for (const [count, node] of [one, two].entries()) {
      const [delivery] = await node.queues.receive('q', RECEIVE)
      expect(delivery?.message.receiveCount).toBe(count + 1)
      await node.queues.nack([delivery?.receipt ?? ''], CLIENT)
    }
    const [dead] = await one.queues.receive('dead', RECEIVE)
    expect(dead && text(dead.message)).toBe('x')
    expect(await one.queues.receive('q', { ...RECEIVE, waitMs: 200 })).toEqual([])
  })

  test('C2 - a message that is returned without a receiver counts no receive, on any node', async () => {
    const server = await startServer()
    const [one, two] = [await openNode(server), await openNode(server)]
    await one.channels.create('queues', 'q')
    const leaving = new AbortController()
    const waiting = one.queues.receive('q', { ...RECEIVE, signal: leaving.signal })
    leaving.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    await one.queues.send('q', queued('x', ONCE))
    const [delivery] = await two.queues.receive('q', RECEIVE)
    expect([delivery?.message.receiveCount, delivery && text(delivery.message)]).toEqual([1, 'x'])
    expect(await two.queues.ack([delivery?.receipt ?? ''], CLIENT)).toEqual({ settled: 1, lost: [] })
  })

  test('C2 - a message whose last receive ended with its node goes to the dead-letter queue', async () => {
    const server = await startServer()
    const one = await openNode(server, { ackWaitMs: 1_000 })
    const two = await openNode(server, { ackWaitMs: 1_000 })
    await one.queues.send('q', queued('x', ONCE))
    await one.queues.receive('q', { ...RECEIVE, leaseMs: 500 })
    await one.close()
    const waiting = two.queues.receive('q', { ...RECEIVE, waitMs: 3_000 })
    const [dead] = await two.queues.receive('dead', RECEIVE)
    expect([dead?.message.tags['dlq_receive_count'], dead && text(dead.message)]).toEqual(['1', 'x'])
    expect(await waiting).toEqual([])
  })

  test('C2 - a message that exceeds the policy after the death of its node goes to the dead-letter queue', async () => {
    const server = await startServer()
    const one = await openNode(server, { ackWaitMs: 1_000 })
    const two = await openNode(server, { ackWaitMs: 1_000 })
    const retry = {
      max_receive_count: 1,
      dead_letter_queue: 'dead',
      min_backoff_seconds: 0,
      max_backoff_seconds: 0,
      backoff_factor: 1,
      jitter: 0,
    }
    two.settings.replace([{ type: 'queues', match: 'q', source: 'api', retry }])
    await one.queues.send('q', queued('x'))
    await one.queues.receive('q', { ...RECEIVE, leaseMs: 500 })
    await one.close()
    const waiting = two.queues.receive('q', { ...RECEIVE, waitMs: 3_000 })
    const [dead] = await two.queues.receive('dead', RECEIVE)
    expect([dead?.message.tags['dlq_receive_count'], dead && text(dead.message)]).toEqual(['1', 'x'])
    expect(await waiting).toEqual([])
  })

  test('C2 - a message keeps its number of receives while its dead-letter queue is full', async () => {
    const server = await startServer()
    const node = await openNode(server, { queueMaxMessages: 1 })
    await node.queues.send('dead', queued('in the way'))
    await node.queues.send('q', queued('x', ONCE))
    const [delivery] = await node.queues.receive('q', RECEIVE)
    await node.queues.nack([delivery?.receipt ?? ''], CLIENT)
    // Long enough for the move to be tried three times.
    expect(await node.queues.receive('q', { ...RECEIVE, waitMs: 11_000 })).toEqual([])
    const [inTheWay] = await node.queues.receive('dead', RECEIVE)
    await node.queues.ack([inTheWay?.receipt ?? ''], CLIENT)
    const waiting = node.queues.receive('q', { ...RECEIVE, waitMs: 6_000 })
    const [dead] = await node.queues.receive('dead', RECEIVE)
    expect([dead?.message.tags['dlq_receive_count'], dead && text(dead.message)]).toEqual(['1', 'x'])
    expect(await waiting).toEqual([])
  }, 60_000)
})

const MAX_PAYLOAD = 65_536
const DEAD = { maxReceiveCount: 1, deadLetterQueue: 'd'.repeat(255) }

/** Receives and rejects whatever the queue gives, until it is empty. */
async function rejectAll(node: NatsEngine, queue: string): Promise<void> {
  for (;;) {
    const deliveries = await node.queues.receive(queue, { ...RECEIVE, maxMessages: 100, waitMs: 0 })
    if (deliveries.length === 0) return
    await node.queues.nack(
      deliveries.map(({ receipt }) => receipt),
      CLIENT,
    )
  }
}

describe.skipIf(NATS_SERVER === undefined)('dead letters', () => {
  test('CL-20, C2 - every message that a queue accepts fits its dead-letter queue too, with the tags for the reason', async () => {
    const server = await startServer({ config: `max_payload: ${MAX_PAYLOAD}` })
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    const refused: unknown[] = []
    let accepted = 0
    for (let size = MAX_PAYLOAD - 3_000; size < MAX_PAYLOAD; size += 100) {
      try {
        await node.queues.send('q', queued('x'.repeat(size), DEAD))
        accepted++
      } catch (error) {
        refused.push(error)
      }
    }
    expect(accepted).toBeGreaterThan(5)
    expect(refused.length).toBeGreaterThan(5)
    for (const error of refused) {
      const message = expect.stringMatching(/1024 bytes .*dead-letter queue.* 65024 \(max_payload\)/)
      expect(error).toMatchObject({ code: 'MESSAGE_TOO_LARGE', message, details: { limit: 65_024 } })
    }
    await expect(node.queues.sendBatch('q', [queued('x'.repeat(MAX_PAYLOAD - 1_000), DEAD)])).rejects.toMatchObject({
      code: 'MESSAGE_TOO_LARGE',
    })
    await rejectAll(node, 'q')
    await vi.waitFor(async () => {
      expect((await node.channels.info('queues', 'q'))?.queue).toMatchObject({ waiting: 0, deadLettered: accepted })
      expect((await node.channels.info('queues', DEAD.deadLetterQueue))?.queue?.waiting).toBe(accepted)
    }, PATIENT)
    expect(problems.filter(({ kind }) => kind === 'failed')).toEqual([])
    // Nothing is kept for what cannot be dead-lettered.
    await node.queues.send('plain', queued('x'.repeat(MAX_PAYLOAD - 1_000), { deadLetterQueue: 'd' }))
  })

  test('CL-20, C2 - a message that no longer fits its dead-letter queue stays in its queue and is reported once', async () => {
    const server = await startServer()
    const large = await openNode(server)
    for (const body of ['x'.repeat(70_000), 'y'.repeat(70_000)]) await large.queues.send('q', queued(body, DEAD))
    await large.close()
    await server.stop()
    await server.start(`max_payload: ${MAX_PAYLOAD}`)
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    await rejectAll(node, 'q')
    const told = problems.filter(({ message }) => message.includes('dead-letter queue'))
    expect(told).toEqual([{ kind: 'warning', message: expect.stringMatching(/"q".*max_payload/) }])
    expect((await node.channels.info('queues', 'q'))?.queue?.deadLettered).toBe(0)
    expect(await node.queues.peek('q', { maxMessages: 5 })).toHaveLength(2)
  })
})

describe.skipIf(NATS_SERVER === undefined)('large messages', () => {
  test('queues - a message of megabytes is read byte for byte, unless its reader is not allowed to', async () => {
    const node = await openNode(await startServer(), { maxMessageBytes: 4_000_000 })
    for (const bytes of [1_048_576, 3_000_001]) {
      const body = Uint8Array.from({ length: bytes }, (_, at) => (at * 7 + (at >> 8)) & 255)
      await node.queues.send(`q${bytes}`, { ...queued(''), body })
      await node.eventsStore.append(`s${bytes}`, { ...queued(''), body })
      const [[peeked], [read]] = await Promise.all([
        node.queues.peek(`q${bytes}`, { maxMessages: 1 }),
        node.eventsStore.read(`s${bytes}`, { maxMessages: 1 }),
      ])
      expect([peeked, read].map((found) => found !== undefined && Buffer.compare(found.body, body))).toEqual([0, 0])
      const admit = (size: number): void => {
        expect(size).toBeGreaterThan(bytes)
        throw new Error('not now')
      }
      const limit = { maxMessages: 1, admit }
      await expect(node.queues.peek(`q${bytes}`, limit)).rejects.toThrow('not now')
      await expect(node.eventsStore.read(`s${bytes}`, limit)).rejects.toThrow('not now')
      await expect(node.eventsStore.readLatest(`s${bytes}`, limit)).rejects.toThrow('not now')
    }
  })
})
