import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { expect, test } from 'vitest'

import { EdgeTable, MAX_EDGES } from '../src/map/edge-table.ts'
import { TrafficMap } from '../src/map/traffic-map.ts'
import type { Answer, ManagementServer } from './management-server.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

interface MapData {
  readonly node: string
  readonly start: string
  readonly seconds: number
  readonly nodes: readonly {
    readonly id: string
    readonly column: string
    readonly kind: string
    readonly name: string
    readonly nodes?: number
    readonly endpoint_host?: string
  }[]
  readonly edges: readonly {
    readonly from: string
    readonly to: string
    readonly messages: number
    readonly errors: number
    readonly latency_seconds: number | null
  }[]
  readonly total_edges: number
  readonly others: { readonly messages: number; readonly errors: number }
}

function mapOf({ get }: ManagementServer, query = ''): Promise<Answer<MapData>> {
  return get(`/api/map${query}`)
}

/** Returns the counts of the edges by their ends. */
async function edgesOf(server: ManagementServer, query = ''): Promise<Readonly<Record<string, [number, number]>>> {
  const { edges } = (await mapOf(server, query)).data
  return Object.fromEntries(edges.map(({ from, to, messages, errors }) => [`${from} > ${to}`, [messages, errors]]))
}

test('MGMT-22 - the map has the messages and errors between callers, channels and receivers', async () => {
  const server = await manage()
  const { broker } = server
  const shop = broker.as({ clientId: 'shop' })
  const worker = broker.as({ clientId: 'worker' })
  await worker.events.subscribe('prices.*', {}, () => {})
  for (let i = 0; i < 3; i++) await shop.queues.send('orders', { body: text('x') })
  await shop.events.publish('prices.north', { body: text('x') })
  await worker.queues.receive('orders', { maxMessages: 2, leaseMs: 60_000 })
  await expect(shop.queues.send('orders', { body: text('x'), delayMs: -1 })).rejects.toThrow('delayMs')
  expect(await edgesOf(server)).toEqual({
    'callers/shop > queues/orders': [3, 1],
    'queues/orders > receivers/worker': [2, 0],
    'callers/shop > events/prices.north': [1, 0],
    'events/prices.north > receivers/worker': [1, 0],
  })
  const { data } = await mapOf(server)
  expect(data).toMatchObject({ node: 'n1', total_edges: 4, others: { messages: 0, errors: 0 } })
  expect(data.seconds).toBeLessThan(60)
  const received = data.edges.find(({ to }) => to === 'receivers/worker')
  expect(received?.latency_seconds).toBeGreaterThanOrEqual(0)
  expect(await edgesOf(server, '?window=hour')).toEqual(await edgesOf(server))
})

test('MGMT-22 - the map has the latency of commands and queries, and counts those without an answer', async () => {
  const server = await manage()
  const { broker } = server
  const shop = broker.as({ clientId: 'shop' })
  const service = broker.as({ clientId: 'service' })
  await service.queries.subscribe('stock', {}, () => ({ body: 'x' }))
  await service.commands.subscribe('ship', {}, () => ({ error: 'the gate is closed' }))
  await shop.queries.send('stock', { body: text('x') }, { timeoutMs: 5_000 })
  await shop.commands.send('ship', { body: text('x') }, { timeoutMs: 5_000 })
  const lost = shop.queries.send('nothing', { body: text('x') }, { timeoutMs: 20 })
  await expect(lost).rejects.toThrow('nothing')
  expect(await edgesOf(server)).toEqual({
    'callers/shop > queries/stock': [1, 0],
    'queries/stock > receivers/service': [1, 0],
    'callers/shop > commands/ship': [1, 1],
    'commands/ship > receivers/service': [1, 1],
    'callers/shop > queries/nothing': [1, 1],
  })
  const latencies = (await mapOf(server)).data.edges.map(({ latency_seconds }) => latency_seconds)
  expect(latencies.filter((latency) => latency !== null)).toHaveLength(4)
})

const never = async (): Promise<undefined> => undefined

test('MGMT-22 - the map has calls of agents and attempts of webhooks, with the hosts of their endpoints', async () => {
  const webhook = {
    id: 'w1',
    owner: 'shop',
    type: 'queues',
    channel: 'orders',
    endpoint: 'https://hooks.example:8443/secret-path',
    format: 'ce',
    ordered: true,
    state: 'active',
    createdMs: 0,
    deadLetterQueue: 'dead',
  } as const
  const port = { pause: never, resume: never, test: never, rotateSecret: never, redeliver: never }
  const server = await manage({ services: { webhooks: { ...port, list: () => [webhook] } } })
  const { map } = server.api
  map.agentCalled({ clientId: 'shop', agentId: 'planner', status: 'success', seconds: 1 })
  map.agentCalled({ clientId: 'shop', agentId: 'planner', status: 'error', seconds: 2 })
  map.webhookAttempted({ id: 'w1', type: 'queues', channel: 'orders', delivered: true, seconds: 0.5 })
  map.webhookAttempted({ id: 'gone', type: 'run', channel: 'planner/task-1', delivered: false, seconds: 0.5 })
  const { data } = await mapOf(server)
  expect(data.edges).toEqual([
    { from: 'callers/shop', to: 'agents/planner', messages: 2, errors: 1, latency_seconds: 1.5 },
    { from: 'agents/planner', to: 'webhooks/gone', messages: 1, errors: 1, latency_seconds: 0.5 },
    { from: 'queues/orders', to: 'webhooks/w1', messages: 1, errors: 0, latency_seconds: 0.5 },
  ])
  expect(Object.keys(await edgesOf(server, '?search=HOOKS.example'))).toEqual(['queues/orders > webhooks/w1'])
  expect(data.nodes.filter(({ kind }) => kind === 'webhook')).toEqual([
    { id: 'webhooks/gone', column: 'right', kind: 'webhook', name: 'gone' },
    { id: 'webhooks/w1', column: 'right', kind: 'webhook', name: 'w1', endpoint_host: 'hooks.example:8443' },
  ])
})

test('MGMT-22 - the map leaves out reserved channels, and what the server reads for webhooks', async () => {
  const server = await manage()
  const { broker, system } = server
  await broker.as({ clientId: 'shop' }).queues.send('orders', { body: text('x') })
  await system.queues.receive('orders', { maxMessages: 1, leaseMs: 60_000 })
  await system.queues.send('_AGENTS_.own', { body: text('x') })
  expect(await edgesOf(server)).toEqual({ 'callers/shop > queues/orders': [1, 0] })
})

test('MGMT-22 - the map shows the busiest nodes, and counts the others together without losing a message', async () => {
  const server = await manage()
  for (let client = 1; client <= 5; client++) {
    const handle = server.broker.as({ clientId: `c${client}` })
    for (let i = 0; i < client; i++) {
      await handle.queues.send('all', { body: text('x') })
      await handle.queues.send(`own.${client}`, { body: text('x') })
    }
  }
  const { data } = await mapOf(server, '?nodes=2')
  expect(data.nodes.map(({ id, nodes }) => [id, nodes])).toEqual([
    ['callers/c5', undefined],
    ['callers/c4', undefined],
    ['more/left', 3],
    ['queues/all', undefined],
    ['queues/own.5', undefined],
    ['more/middle', 4],
  ])
  expect(data.edges.map(({ from, to, messages }) => [`${from} > ${to}`, messages])).toEqual([
    ['more/left > more/middle', 6],
    ['more/left > queues/all', 6],
    ['callers/c5 > queues/all', 5],
    ['callers/c5 > queues/own.5', 5],
    ['callers/c4 > more/middle', 4],
    ['callers/c4 > queues/all', 4],
  ])
  expect(data.total_edges).toBe(10)
})

test('MGMT-22 - the map is searched by text, and shows one client by its whole name', async () => {
  const server = await manage()
  for (const clientId of ['shop', 'shop-north']) {
    await server.broker.as({ clientId }).queues.send('orders', { body: text('x') })
    await server.broker.as({ clientId }).queues.send('Invoices', { body: text('x') })
  }
  expect(Object.keys(await edgesOf(server, '?search=INVOICE'))).toEqual([
    'callers/shop > queues/Invoices',
    'callers/shop-north > queues/Invoices',
  ])
  expect(Object.keys(await edgesOf(server, '?client=shop'))).toEqual([
    'callers/shop > queues/Invoices',
    'callers/shop > queues/orders',
  ])
  const refused = await server.get('/api/map?nodes=0&window=day')
  expect(refused).toMatchObject({ error: true, data: { code: 'PARAMETER_INVALID' } })
  expect(refused.data.problems.map(({ parameter }) => parameter).toSorted()).toEqual(['nodes', 'window'])
})

test('MGMT-22 - the map needs the role ReadOnly', async () => {
  const server = await manage({ authenticator: tokens() })
  expect((await server.get('/api/map')).status).toBe(401)
  expect((await server.get('/api/map', bearer('anna'))).status).toBe(403)
  expect((await server.get('/api/map', bearer('anna:ReadOnly'))).status).toBe(200)
})

test('MGMT-22 - counts leave the last minute of the map as its steps end', async () => {
  const server = await manage({ historyStepMs: 20 })
  await server.broker.as({ clientId: 'shop' }).queues.send('orders', { body: text('x') })
  expect(await edgesOf(server, '?window=hour')).toEqual({ 'callers/shop > queues/orders': [1, 0] })
  await expect.poll(() => edgesOf(server)).toEqual({})
  expect(await edgesOf(server, '?window=hour')).toEqual({ 'callers/shop > queues/orders': [1, 0] })
})

test('map - a window has its parts up to the present step, also after steps that were left out', () => {
  const table = new EdgeTable(1_000)
  const count = (messages: number): void => void (table.of('send', 'queues', 'orders', 'shop')!.messages += messages)
  const sums = () => (['minute', 'hour'] as const).map((window) => table.list(window)[0]?.messages ?? 0)
  count(1)
  table.roll(1_000)
  count(2)
  table.roll(1_001)
  expect(sums()).toEqual([3, 3])
  // The present step is 1,012: the minute begins with step 1,001.
  table.roll(1_011)
  expect([table.firstStep('minute'), sums()]).toEqual([1_001, [2, 3]])
  table.roll(1_012)
  expect(sums()).toEqual([0, 3])
  count(4)
  table.roll(1_200)
  expect(sums()).toEqual([4, 7])
  // The clock was set back a little: the counts stay, and time goes on when it has caught up.
  table.roll(1_190)
  expect(sums()).toEqual([4, 7])
  // The hour has parts of 60 steps: the first one ends with step 1,019.
  table.roll(1_679)
  expect([table.firstStep('hour'), sums()]).toEqual([1_020, [0, 4]])
  table.roll(2_000)
  expect(table.size).toBe(0)
})

test('map - a full table counts further edges together, and forgets idle ones first', () => {
  const table = new EdgeTable(1_000, 2)
  const count = (party: string): void => void table.of('send', 'queues', 'orders', party)!.messages++
  count('idle')
  count('busy')
  count('late')
  expect([table.size, table.others.sum('hour').messages]).toEqual([2, 1])
  for (let step = 1_000; step < 1_013; step++) {
    count('busy')
    table.roll(step)
  }
  count('late')
  expect(table.list('hour').map(({ party, messages }) => [party, messages])).toEqual([
    ['busy', 14],
    ['late', 1],
  ])
  // With that of the edge that was forgotten, no message is lost.
  expect(table.others.sum('hour').messages).toBe(2)
})

const CALLERS = Array.from({ length: 1_000 }, (_, i) => Object.freeze({ clientId: `client-${i}` }))

test(`MGMT-22 - the map of 100,000 distinct edges needs the memory of ${MAX_EDGES}`, () => {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  const used = (): number => {
    if (typeof collect === 'function') collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  const map = new TrafficMap(5_000)
  for (let channel = 0; channel < 100; channel++) {
    for (const caller of CALLERS) map.accepted('queues', `orders.${channel}`, caller)
  }
  const mib = (used() - before) / 1_048_576
  console.log(`map: 100,000 distinct edges: ${map.edges.size} counted alone, ${mib.toFixed(1)} MiB`)
  expect(map.edges.size).toBe(MAX_EDGES)
  expect(map.edges.others.sum('minute').messages).toBe(90_000)
  expect(mib).toBeLessThan(16)
  // Each edge with a channel of its own needs the most.
  const wide = new TrafficMap(5_000)
  const start = used()
  for (let channel = 0; channel < 100_000; channel++) {
    wide.accepted('queues', `orders.${channel}`, CALLERS[channel % 1_000]!)
  }
  const wideMib = (used() - start) / 1_048_576
  console.log(`map: 100,000 distinct channels: ${wide.edges.size} edges, ${wideMib.toFixed(1)} MiB`)
  expect(wideMib).toBeLessThan(16)
  expect(map.edges.size + wide.edges.size).toBe(2 * MAX_EDGES)
})
