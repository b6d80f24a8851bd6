import { decodeText } from '@signalbox/broker-core'
import type { AgentCard, InboxItem } from '@signalbox/registry'
import { describe, expect, test } from 'vitest'

import { RunLog } from '../../src/runs/run-log.ts'
import type { GatewayHost } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { beginStream, counting, DURABLE, openDurable, PLAIN, send, taskEvent } from '../runs/durable-host.ts'

const PULL = 'puller'
const V10 = { 'a2a-version': '1.0' }

interface SendResult {
  readonly result: { readonly task: { readonly id: string } }
}

async function openPull(): Promise<GatewayHost> {
  const host = await openGateway()
  await host.registry.register({ agent_id: PULL, name: 'p', a2a: { pull: true } }, { clientId: 'owner' })
  return host
}

function cardOf({ registry }: GatewayHost): AgentCard {
  const card = registry.get(PULL)
  if (card === undefined) throw new Error('the agent is not registered')
  return card
}

/** Parks a message, and returns the id of its task. */
async function park(host: GatewayHost, text: string): Promise<string> {
  // A send waits for its answer while a lessee is heard.
  const message = { messageId: text, role: 'ROLE_USER', parts: [{ text }] }
  const params = { message, configuration: { returnImmediately: true } }
  const { text: answer } = await host.post(PULL, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, V10)
  return (JSON.parse(answer) as SendResult).result.task.id
}

async function lease(host: GatewayHost): Promise<InboxItem> {
  const { signal } = new AbortController()
  const options = { max: 1, waitMs: 1_000, leaseMs: 60_000, signal }
  const [item] = (await host.connector.inbox?.lease(cardOf(host), options)) ?? []
  if (item === undefined) throw new Error('nothing was leased')
  return item
}

function inboxesOf({ connector: { inboxes } }: GatewayHost): NonNullable<typeof inboxes> {
  if (inboxes === undefined) throw new Error('the gateway has no inboxes')
  return inboxes
}

function write(host: GatewayHost, receipt: string, states: readonly string[]) {
  const events = states.map((state) => ({ statusUpdate: { status: { state: `TASK_STATE_${state}` } } }))
  return host.connector.inbox?.events(cardOf(host), { receipt, offset: 0, events })
}

describe('operators', () => {
  test('inboxes - the depth and the tasks of an inbox, newest first, in pages', async () => {
    const host = await openPull()
    await host.registry.register({ agent_id: 'plain', name: 'p', url: 'http://127.0.0.1:9/' }, { clientId: 'owner' })
    const inboxes = inboxesOf(host)
    expect(inboxes.ids()).toEqual([PULL])
    expect(await inboxes.tasks(PULL, { limit: 10 })).toEqual({ items: [], next: undefined, total: 0 })
    const [first, second, third] = [await park(host, 'a'), await park(host, 'b'), await park(host, 'c')]
    const { receipt } = await lease(host)
    expect(await inboxes.status(PULL)).toMatchObject({ waiting: 2, inFlight: 1 })
    const page = await inboxes.tasks(PULL, { limit: 2 })
    expect(page?.items.map(({ id }) => id)).toEqual([third, second])
    expect(page?.items[0]).toMatchObject({ agentId: PULL, callerId: 'anonymous', phase: 'stored', attempt: 0 })
    expect(page?.total).toBe(3)
    const rest = await inboxes.tasks(PULL, { limit: 2, after: page?.next })
    expect(rest?.items).toMatchObject([{ id: first, phase: 'delivered', attempt: 1 }])
    expect(rest?.next).toBeUndefined()
    await write(host, receipt, ['COMPLETED'])
    expect((await inboxes.tasks(PULL, { limit: 9 }))?.total).toBe(2)
    expect((await inboxes.tasks(PULL, { limit: 9, all: true }))?.items.at(-1)).toMatchObject({ phase: 'done' })
    expect(inboxes.phases()).toEqual({ stored: 2, delivered: 0, working: 0, waiting: 0 })
    expect(await inboxes.status('plain')).toBeUndefined()
    expect(await inboxes.tasks('plain', { limit: 1 })).toBeUndefined()
  })

  test('inboxes - a parked task is canceled with the reason; the lessee of another one is asked', async () => {
    const host = await openPull()
    const inboxes = inboxesOf(host)
    const leased = await park(host, 'a')
    const { receipt } = await lease(host)
    const parked = await park(host, 'b')
    expect(await inboxes.cancel(PULL, parked)).toMatchObject({ id: parked, phase: 'done', reason: 'CANCELED' })
    expect(await inboxes.cancel(PULL, parked)).toMatchObject({ phase: 'done' })
    expect(await inboxes.cancel(PULL, leased)).toMatchObject({ phase: 'delivered', cancelRequested: true })
    expect(await write(host, receipt, [])).toMatchObject({ cancelRequested: true })
    const events = await inboxes.events(PULL, parked, { limit: 10, maxPayloadBytes: 10_000 })
    expect(events).toMatchObject({ run: parked, callerId: 'anonymous', firstSequence: 1, isOver: true })
    expect(events?.items.map(({ kind, state }) => [kind, state])).toEqual([
      ['task', 'TASK_STATE_SUBMITTED'],
      ['status', 'TASK_STATE_CANCELED'],
      ['end', undefined],
    ])
    expect(decodeText(events?.items[1]?.payload ?? new Uint8Array())).toContain('an operator has canceled it')
    expect(await inboxes.cancel('other', parked)).toBeUndefined()
    expect(await inboxes.cancel(PULL, 'nothing')).toBeUndefined()
  })

  test('runs - the events of a task of an agent without an inbox, by sequence and cut to a size', async () => {
    const { host } = await openDurable((_asked, response) => {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      response.write(taskEvent('t1', { artifact: 'x'.repeat(300_000) }))
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    })
    const before = Date.now()
    await host.post(DURABLE, send('hello', 'm1', 1, 'SendStreamingMessage'), V10)
    const inboxes = inboxesOf(host)
    const all = await inboxes.events(DURABLE, 't1', { limit: 10, maxPayloadBytes: 20 })
    expect(all?.items.map(({ kind, sequence }) => [sequence, kind])).toEqual([
      [1, 'task'],
      [2, 'other'],
      [3, 'status'],
      ...(all?.items.length === 4 ? [[4, 'end']] : []),
    ])
    expect(all?.items[1]).toMatchObject({ payload: expect.objectContaining({ byteLength: 20 }) })
    expect(all?.items[1]?.size).toBeGreaterThan(300_000)
    for (const { at } of all?.items ?? []) expect(at).toBeGreaterThanOrEqual(before - 1_000)
    const page = await inboxes.events(DURABLE, 't1', { from: 2, limit: 1, maxPayloadBytes: 20 })
    expect(page).toMatchObject({ items: [{ sequence: 2 }], next: 3, isOver: false })
    const last = await inboxes.events(DURABLE, 't1', { from: page?.next, limit: 9, maxPayloadBytes: 1_000 })
    expect(last).toMatchObject({ next: undefined, isOver: true })
    expect(last?.items[0]).toMatchObject({ sequence: 3, kind: 'status', state: 'TASK_STATE_COMPLETED' })
    const byRun = await inboxes.events(DURABLE, all?.run ?? '', { limit: 1, maxPayloadBytes: 1 })
    expect(byRun?.run).toBe(all?.run)
    expect(await inboxes.events(PLAIN, all?.run ?? '', { limit: 1, maxPayloadBytes: 1 })).toBeUndefined()
    expect(await inboxes.events(DURABLE, 'unknown', { limit: 1, maxPayloadBytes: 1 })).toBeUndefined()
    expect(host.connector.runCounts).toMatchObject({ events: all?.items.length })
    expect(host.connector.runCounts.bytes).toBeGreaterThan(300_000)
  })

  test('counts - keys, replays and leases by outcome; calls that are not kept count nothing', async () => {
    const { host } = await openDurable(counting())
    const { runCounts } = host.connector
    await host.post(PLAIN, send('hello', 'm1'), V10)
    expect(runCounts).toMatchObject({ appends: 0, events: 0, keyed: { first: 0 } })
    await host.post(DURABLE, send('hello', 'm1'), V10)
    await host.post(DURABLE, send('hello', 'm1'), V10)
    await host.post(DURABLE, send('other', 'm1'), V10)
    expect(runCounts).toMatchObject({ appends: 1, events: 1, keyed: { first: 1, repeated: 1, refused: 1 } })
    expect(host.connector.runsInProgress()).toBe(0)
    const replay = (cursor: string) =>
      host.post(DURABLE, send('hello', 'm1', 1, 'SendStreamingMessage'), { ...V10, 'last-event-id': cursor })
    await replay('11111111-1111-4111-8111-111111111111.1')
    expect(runCounts.replays).toEqual({ complete: 0, gap: 0, refused: 1 })
  })

  test('counts - streams that continue where they broke off, complete or after a gap', async () => {
    const { host } = await openDurable((_asked, response) => {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      // Longer than a chunk of the log.
      response.write(taskEvent('t1', { artifact: 'x'.repeat(300_000) }))
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    })
    const { connector, system } = host
    await host.post(DURABLE, send('hello', 'm1', 1, 'SendStreamingMessage'), V10)
    const { run = '' } = (await inboxesOf(host).events(DURABLE, 't1', { limit: 1, maxPayloadBytes: 0 })) ?? {}
    const request = { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 't1' } }
    const subscribe = () => host.post(DURABLE, request, { ...V10, 'last-event-id': `${run}.1` })
    await subscribe()
    expect(connector.runCounts.replays).toEqual({ complete: 1, gap: 0, refused: 0 })
    const log = new RunLog(system, { maxAgeMs: 0, maxBytes: 0 })
    await log.trim(run, 3, 1)
    await subscribe()
    expect(connector.runCounts.replays).toEqual({ complete: 1, gap: 1, refused: 0 })
  })

  test('counts - the leases of inboxes by outcome', async () => {
    const host = await openPull()
    const { inbox, runCounts } = host.connector
    await park(host, 'a')
    const first = await lease(host)
    await inbox?.nack(cardOf(host), { receipt: first.receipt })
    const second = await lease(host)
    await expect(write(host, first.receipt, ['WORKING'])).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await write(host, second.receipt, ['COMPLETED'])
    await park(host, 'b')
    await inbox?.nack(cardOf(host), { receipt: (await lease(host)).receipt, reject: true })
    expect(runCounts.leases).toEqual({
      granted: 2,
      redelivered: 1,
      answered: 1,
      returned: 1,
      rejected: 1,
      lost: 1,
    })
  })
})
