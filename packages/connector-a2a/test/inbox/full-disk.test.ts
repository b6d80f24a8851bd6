import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, InboxItem } from '@signalbox/registry'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { FullDisk } from '../full-disk.ts'
import type { Answer, GatewayHost } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { beginStream, DURABLE, openDurable, send, taskEvent } from '../runs/durable-host.ts'

const PULL = 'puller'
const V10 = { 'a2a-version': '1.0' }
const UNAVAILABLE = { code: -32603, data: [{ reason: 'BROKER_UNAVAILABLE' }, { retryDelay: '5s' }] }

async function openPull(disk: FullDisk): Promise<GatewayHost> {
  const host = await openGateway({ engine: disk.wrap })
  await host.registry.register({ agent_id: PULL, name: 'p', a2a: { pull: true } }, { clientId: 'owner' })
  return host
}

function cardOf(host: GatewayHost): AgentCard {
  const card = host.registry.get(PULL)
  if (card === undefined) throw new Error('the agent is not registered')
  return card
}

async function lease(host: GatewayHost): Promise<readonly InboxItem[]> {
  const { signal } = new AbortController()
  return (await host.connector.inbox?.lease(cardOf(host), { max: 4, waitMs: 0, leaseMs: 1_000, signal })) ?? []
}

function rpc({ text }: Answer): { readonly result?: { readonly task: Task }; readonly error?: object } {
  return JSON.parse(text) as { result?: { task: Task }; error?: object }
}

interface Task {
  readonly id: string
  readonly status: { readonly state: string }
}

function status(state: string): JsonObject {
  return { statusUpdate: { status: { state: `TASK_STATE_${state}` } } }
}

async function get(host: GatewayHost, id: string): Promise<Task> {
  const { text } = await host.post(PULL, { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } }, V10)
  return (JSON.parse(text) as { result: Task }).result
}

describe('a full disk', () => {
  test.each([
    ['the key', (channel: string, key = '') => channel === '_AGENTS_.runs' && key.startsWith('k/')],
    ['the item', (channel: string) => channel.startsWith('_AGENTS_.inbox/')],
    ['the state', (channel: string) => channel === '_AGENTS_.parked'],
    ['the first event', (channel: string) => channel === '_AGENTS_.run-log'],
  ])(
    'full disk - %s of a parked request is not written: its caller gets an error; the repeated request is delivered once',
    async (_what, refuses) => {
      const disk = new FullDisk()
      const host = await openPull(disk)
      disk.refuses = refuses
      expect(rpc(await host.post(PULL, send('hello', 'm1'), V10)).error).toMatchObject(UNAVAILABLE)
      expect(disk.refused).toBeGreaterThan(0)
      disk.refuses = () => false
      const { task } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result ?? {}
      expect(task?.status.state).toBe('TASK_STATE_SUBMITTED')
      const items = [...(await lease(host)), ...(await lease(host))]
      expect(items.map(({ taskId }) => taskId)).toEqual([task?.id])
      const receipt = items[0]?.receipt ?? ''
      await host.connector.inbox?.events(cardOf(host), { receipt, offset: 0, events: [status('COMPLETED')] })
      expect((await get(host, task?.id ?? '')).status.state).toBe('TASK_STATE_COMPLETED')
      expect(await lease(host)).toEqual([])
    },
  )

  test('full disk - events of a lessee are not written: it gets an error, and sends them again', async () => {
    const disk = new FullDisk()
    const host = await openPull(disk)
    const { task } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result ?? {}
    disk.refuses = (channel) => channel === '_AGENTS_.parked'
    await expect(lease(host)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    disk.refuses = () => false
    // The failed call has leased it for a second.
    let item: InboxItem | undefined
    await until(async () => ([item] = await lease(host)).length > 0)
    const { receipt = '' } = item ?? {}
    const call = (offset: number, events: readonly JsonObject[]) =>
      host.connector.inbox?.events(cardOf(host), { receipt, offset, events })
    for (const [offset, event] of [status('WORKING'), status('COMPLETED')].entries()) {
      for (const channel of ['_AGENTS_.parked', '_AGENTS_.run-log']) {
        disk.refuses = (one) => one === channel
        const before = disk.refused
        // Only the first event of a delivery changes the state before it is written.
        const result = await call(offset, [event])?.catch((error: unknown) => error)
        expect(result).toMatchObject(disk.refused > before ? { code: 'ENGINE_UNAVAILABLE' } : { accepted: offset + 1 })
        disk.refuses = () => false
        await call(offset, disk.refused > before ? [event] : [])
      }
    }
    expect((await get(host, task?.id ?? '')).status.state).toBe('TASK_STATE_COMPLETED')
    expect(await host.connector.inbox?.status(cardOf(host))).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('full disk - a logged stream pauses, and goes on with all its events', async () => {
    const disk = new FullDisk()
    const isFull = Promise.withResolvers<void>()
    const { host, agent } = await openDurable(
      async (_asked, response) => {
        beginStream(response)
        response.write(taskEvent('t1', { task: 'WORKING' }))
        await isFull.promise
        for (let n = 2; n < 200; n++) response.write(taskEvent('t1', { artifact: `${n} ` }))
        response.end(taskEvent('t1', { state: 'COMPLETED' }))
      },
      { engine: disk.wrap },
    )
    const answer = fetch(`${host.base}/a2a/${DURABLE}`, {
      method: 'POST',
      headers: { ...V10, 'content-type': 'application/json' },
      body: JSON.stringify(send('go', 'm1', 1, 'SendStreamingMessage')),
    })
    const response = await answer
    disk.refuses = (channel) => channel === '_AGENTS_.run-log'
    isFull.resolve()
    await until(() => disk.refused > 1)
    disk.refuses = () => false
    const text = await response.text()
    const sequences = [...text.matchAll(/^id: .*\.(\d+)$/gm)].map(([, n]) => Number(n))
    expect(sequences).toEqual(Array.from({ length: 200 }, (_, i) => i + 1))
    expect(agent.asked).toHaveLength(1)
  })

  test('full disk - a logged call is refused before it is sent if its key is not written; a lost answer is unknown', async () => {
    const disk = new FullDisk()
    const { host, agent } = await openDurable(
      ({ body }, response) => {
        const { id } = JSON.parse(body) as { id: unknown }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(
          JSON.stringify({
            jsonrpc: '2.0',
            id,
            result: { message: { messageId: 'a', role: 'ROLE_AGENT', parts: [] } },
          }),
        )
      },
      { engine: disk.wrap, shared: false },
    )
    disk.refuses = (channel, key = '') => channel === '_AGENTS_.runs' && key.startsWith('k/')
    const refused = await host.post(DURABLE, send('hello', 'm1'), V10)
    expect(rpc(refused).error).toMatchObject(UNAVAILABLE)
    expect(agent.asked).toHaveLength(0)
    disk.refuses = (channel) => channel === '_AGENTS_.run-log'
    expect(rpc(await host.post(DURABLE, send('hello', 'm1'), V10)).result).toBeDefined()
    disk.refuses = () => false
    const again = rpc(await host.post(DURABLE, send('hello', 'm1'), V10))
    expect(again.error).toMatchObject({ data: [{ reason: 'OUTCOME_UNKNOWN' }] })
    expect(agent.asked).toHaveLength(1)
  })
})
