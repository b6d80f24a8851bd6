import type { NatsEngineProblem, NatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test, vi } from 'vitest'

import { CLIENT, queued, RECEIVE } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
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

  test('CL-20, C2 - one that fits no dead-letter queue, as the servers take less now, stays and is reported once', async () => {
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
