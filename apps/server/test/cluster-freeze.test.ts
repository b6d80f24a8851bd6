import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { startCli } from './support/cli.ts'
import { callTool } from './support/mcp.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'

interface Taken {
  readonly receipt: string
  readonly receive_count: number
}

async function settle(base: string, how: 'ack' | 'nack', receipt: string): Promise<unknown> {
  const url = `${base}/ce/queue/${how}?receipt=${encodeURIComponent(receipt)}`
  return ((await (await fetch(url, { method: 'POST' })).json()) as { data: unknown }).data
}

async function receive(base: string, waitSeconds: number): Promise<readonly Taken[]> {
  const url = `${base}/ce/queue/receive?channel=q&max_messages=2&visibility_seconds=120&wait_timeout=${waitSeconds}`
  const answer = (await (await fetch(url, { method: 'POST' })).json()) as { data: { messages: Taken[] } }
  return answer.data.messages
}

/** Leases two messages, which need not come at the same time. */
async function receiveTwo(base: string): Promise<readonly Taken[]> {
  const taken: Taken[] = []
  while (taken.length < 2) taken.push(...(await receive(base, 20)))
  return taken
}

describe.skipIf(NATS_SERVER === undefined)('a node stands still', () => {
  test(
    'CL-3 - after a freeze a node leaves to the others the leases that they took over',
    { timeout: 90_000 },
    async () => {
      const nats = await startNats()
      const one = await serveNode(nats)
      const cli = startCli({ env: { ENGINE: 'nats', NATS_SERVERS: nats.url, LOG_LEVEL: 'warn' } })
      const two = await cli.ready()
      for (const body of ['taken over', 'kept']) await callTool(one.http.url, 'queue_send', { channel: 'q', body })
      const [first, second] = await receiveTwo(two.http)
      cli.child.kill('SIGSTOP')
      // As soon as the others take it for gone; until then the call says that it cannot be served.
      await expect
        .poll(() => settle(one.http.url, 'nack', first!.receipt), { timeout: 40_000 })
        .toMatchObject({ settled: 1 })
      const [again] = await receive(one.http.url, 20)
      expect(again?.receive_count).toBe(2)
      cli.child.kill('SIGCONT')
      // What it was asked while it stood still reaches it now, and it may find its connection lost at first.
      await expect.poll(() => settle(two.http, 'ack', second!.receipt), PATIENT).toMatchObject({ settled: 1 })
      expect(await settle(two.http, 'nack', first!.receipt)).toMatchObject({ settled: 1, lost: [] })
      expect(await settle(two.http, 'ack', first!.receipt)).toMatchObject({ settled: 0, lost: [first!.receipt] })
      expect(await receive(one.http.url, 3)).toEqual([])
      expect(await settle(two.http, 'ack', again!.receipt)).toMatchObject({ settled: 1 })
    },
  )
})
