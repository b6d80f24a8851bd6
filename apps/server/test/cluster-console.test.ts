import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { callTool } from './support/mcp.ts'
import { serveNodes } from './support/nodes.ts'

interface Channels {
  readonly items: readonly { readonly name: string; readonly depth: number | null }[]
  readonly complete: boolean
}

interface History {
  readonly queues: { readonly waiting: readonly (number | null)[] }
  readonly channels: readonly { readonly name: string; readonly depth: readonly (number | null)[] }[]
}

async function data<T>(url: string): Promise<T> {
  const answer = (await (await fetch(url)).json()) as { data: T }
  return answer.data
}

describe.skipIf(NATS_SERVER === undefined)('operators of a cluster', () => {
  test('MGMT-15, MGMT-16 - a node shows the depths of queues that other nodes serve', async () => {
    const [one, other] = await serveNodes(2)
    if (one === undefined || other === undefined) throw new Error('two nodes are needed')
    for (let i = 0; i < 3; i++) await callTool(one.http.url, 'queue_send', { channel: 'deep', body: 'x' })
    await callTool(one.http.url, 'queue_send', { channel: 'flat', body: 'x' })
    const channels = () => data<Channels>(`${other.api.url}/api/channels?sort=depth&order=desc`)
    await expect
      .poll(async () => (await channels()).items.map(({ name, depth }) => [name, depth]), { timeout: 10_000 })
      .toEqual([
        ['deep', 3],
        ['flat', 1],
      ])
    expect((await channels()).complete).toBe(true)
    const history = () => data<History>(`${other.api.url}/api/history?channel=deep&type=queues`)
    await expect
      .poll(
        async () => {
          const { queues, channels: followed } = await history()
          return [queues.waiting.at(-1), followed[0]?.depth.at(-1)]
        },
        { timeout: 20_000 },
      )
      .toEqual([4, 3])
  }, 60_000)
})
