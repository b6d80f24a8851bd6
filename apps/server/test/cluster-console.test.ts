import { hostname } from 'node:os'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { VERSION } from '../src/version.ts'
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
      .poll(
        async () => {
          const { items, complete } = await channels()
          return [complete, ...items.map(({ name, depth }) => [name, depth])]
        },
        { timeout: 20_000 },
      )
      .toEqual([true, ['deep', 3], ['flat', 1]])
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

  test('MGMT-20 - a node lists the other nodes with their versions, until they leave', async () => {
    const [one, other] = await serveNodes(2)
    if (one === undefined || other === undefined) throw new Error('two nodes are needed')
    const nodes = async () => (await data<{ readonly items: readonly object[] }>(`${one.api.url}/api/nodes`)).items
    const host = { node: hostname(), version: VERSION, engine: 'nats' }
    await expect.poll(nodes, { timeout: 20_000 }).toMatchObject([
      { ...host, id: null, answers: true, ready: true, healthy: true },
      { ...host, id: expect.any(String), answers: false, ready: null, healthy: null, uptime_seconds: null },
    ])
    await other.close()
    await expect.poll(nodes, { timeout: 20_000 }).toHaveLength(1)
  }, 60_000)

  test('dead letters - a node finds the queues of the cluster that hold them', async () => {
    const [one, other] = await serveNodes(2)
    if (one === undefined || other === undefined) throw new Error('two nodes are needed')
    const { queues } = one.broker.as({ clientId: 'shop' })
    const body = new TextEncoder().encode('x')
    await queues.send('orders', { body, maxReceiveCount: 1, deadLetterQueue: 'dead' })
    const [taken] = await queues.receive('orders', { waitMs: 20_000 })
    await queues.nack(taken === undefined ? [] : [taken.receipt])
    await queues.send('bills', { body })
    const list = () => data<object>(`${other.api.url}/api/dead_letter_queues`)
    await expect.poll(list, { timeout: 20_000 }).toMatchObject({
      items: [{ channel: 'dead', waiting: 1, sources: [{ source: 'orders', count: 1 }] }],
      examined: 2,
      complete: true,
    })
  }, 60_000)
})
