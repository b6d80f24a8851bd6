import type { NatsEngineProblem } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { queued, RECEIVE } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const ALL = { maxMessages: 100, maxBytes: 100_000_000 }

describe.skipIf(NATS_SERVER === undefined)('large messages', () => {
  test('reads - many readers of large messages do not make the servers close the connection', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    await node.queues.send('q', queued('x'.repeat(9_000_000)))
    // 108 MB; the servers close a connection to which they have to send 64.
    const reads = Array.from({ length: 12 }, () => node.queues.peek('q', ALL))
    const sizes = (await Promise.all(reads)).map(([message]) => message?.body.byteLength)
    expect(new Set(sizes)).toEqual(new Set([9_000_000]))
    expect(problems.filter(({ kind }) => kind === 'disconnected')).toEqual([])
  })

  test(
    'receives - many receivers of large messages do not make the servers close the connection',
    { timeout: 120_000 },
    async () => {
      const server = await startServer()
      const problems: NatsEngineProblem[] = []
      const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
      const receive = () => node.queues.receive('q', { ...RECEIVE, maxBytes: 16_000_000, waitMs: 60_000 })
      const waiting = Array.from({ length: 5 }, receive)
      for (let n = 0; n < 20; n++) await node.queues.send('q', queued('x'.repeat(9_000_000)))
      const received = await Promise.all([...waiting, ...Array.from({ length: 15 }, receive)])
      expect(new Set(received.map(([delivery]) => delivery?.message.body.byteLength))).toEqual(new Set([9_000_000]))
      expect(problems.filter(({ kind }) => kind === 'disconnected')).toEqual([])
    },
  )
})
