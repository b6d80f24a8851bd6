import { describe, expect, test, vi } from 'vitest'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'

import { CLIENT, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

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

  test('C2 - a rejected message without a receive does not count, on any node', async () => {
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

  test('C2 - a message has its number of receives, also after a long wait for a full dead-letter queue', async () => {
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
