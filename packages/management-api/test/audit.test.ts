import type { Engine } from '@signalbox/broker-core'
import { BrokerError, createBroker } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { brokerAudit } from '../src/audit/broker-audit.ts'
import { readAudit } from '../src/audit/audit-operations.ts'
import { AUDIT_CHANNEL, AuditLog } from '../src/index.ts'
import type { Item, ManagementServer } from './management-server.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

const ADMIN = bearer('root:Admin')

/** The time for which a log that closes may store entries on a busy machine, in ms. */
const GRACE_MS = 40_000

/** Entries once there are so many that fit; appends are not waited for. */
async function entries({ get }: ManagementServer, count: number, query = '', headers = {}): Promise<readonly Item[]> {
  let items: readonly Item[] = []
  await expect.poll(async () => (items = (await get(`/api/audit${query}`, headers)).data.items).length).toBe(count)
  return items
}

test('AUDIT-1 - an action is recorded with caller, action, target, address and outcome', async () => {
  const server = await manage({ authenticator: tokens(), audit: { node: 'n1' } })
  const { act } = server
  await act('create_channel', { channel: 'orders', type: 'queues' }, bearer('alice:ReadWrite'))
  await act(
    'send_queue_message',
    { channel: 'orders', body: 'secret body', tags: { a: 'secret tag' } },
    bearer('alice:ReadWrite'),
  )
  await act('purge_queue', { channel: 'nobody' }, ADMIN)
  await act('purge_queue', { channel: 1, body: 'secret body' }, ADMIN)
  await act('purge_queue', { channel: 'orders' }, bearer('bob:ReadOnly'))
  await act('deregister_agent', { agent_id: 'writer' }, ADMIN)
  const [agent, denied, invalid, purge, send, create] = await entries(server, 6, '', ADMIN)
  const common = { time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/), node: 'n1', address: '127.0.0.1' }
  expect(create).toEqual({
    ...common,
    client: 'alice',
    action: 'create_channel',
    outcome: 'success',
    type: 'queues',
    channel: 'orders',
    detail: 'created',
  })
  expect(send).toMatchObject({ client: 'alice', action: 'send_queue_message', outcome: 'success', channel: 'orders' })
  expect(purge).toEqual({
    ...common,
    client: 'root',
    action: 'purge_queue',
    outcome: 'failure',
    type: 'queues',
    channel: 'nobody',
    code: 'CHANNEL_NOT_FOUND',
  })
  expect(invalid).toMatchObject({ action: 'purge_queue', outcome: 'failure', code: 'ARGUMENT_INVALID' })
  expect(denied).toEqual({ ...common, client: 'bob', action: 'purge_queue', outcome: 'denied', code: 'ROLE_MISSING' })
  expect(agent).toMatchObject({
    action: 'deregister_agent',
    agent: 'writer',
    outcome: 'failure',
    code: 'AGENT_NOT_FOUND',
  })
  const stored = await server.system.eventsStore.read(AUDIT_CHANNEL, { maxMessages: 100 })
  expect(stored.map(({ body }) => new TextDecoder().decode(body)).join('')).not.toMatch(/secret|alice:ReadWrite/)
})

test('AUDIT-1 - the detail of an entry counts messages', async () => {
  const server = await manage()
  const { act } = server
  await act('send_queue_message', { channel: 'orders', body: 'x' })
  await act('purge_queue', { channel: 'orders' })
  await act('purge_queue', { channel: 'orders' })
  const [none, one] = await entries(server, 3)
  expect([one?.['detail'], none?.['detail']]).toEqual(['1 message removed', '0 messages removed'])
})

test('AUDIT-2 - channels that others create, delete and purge, and nothing of the broker itself', async () => {
  const server = await manage({ authenticator: tokens() })
  const { channels, queues, events } = server.broker.as({ clientId: 'app' })
  await channels.create('queues', 'a')
  await queues.purge('a')
  await channels.delete('queues', 'a')
  await channels.create('queues', '_AGENTS_.x').catch(() => {})
  await events.publish('e', { body: text('x') })
  await server.system.channels.create('events_store', '_AGENTS_.other')
  const list = await entries(server, 4, '', ADMIN)
  expect(list.map(({ client, action, outcome, code }) => [client, action, outcome, code])).toEqual([
    ['app', 'create_channel', 'failure', 'CHANNEL_RESERVED'],
    ['app', 'delete_channel', 'success', undefined],
    ['app', 'purge_queue', 'success', undefined],
    ['app', 'create_channel', 'success', undefined],
  ])
})

test('AUDIT-2 - denials of the policy are audited', async () => {
  const server = await manage()
  const audit = brokerAudit(server.api.audit, { messages: false })
  const app = { clientId: 'app' }
  audit.denied?.('send', 'queues', 'orders', app)
  audit.failed?.('create', 'queues', 'orders', app, 'CHANNEL_LIMIT')
  audit.denied?.('call', 'agents', 'writer', app)
  const list = await entries(server, 3)
  expect(
    list.map(({ client, action, type, channel, agent, outcome, code }) => [
      client,
      action,
      type ?? agent,
      channel,
      outcome,
      code,
    ]),
  ).toEqual([
    ['app', 'call', 'writer', undefined, 'denied', 'FORBIDDEN'],
    ['app', 'create_channel', 'queues', 'orders', 'failure', 'CHANNEL_LIMIT'],
    ['app', 'send', 'queues', 'orders', 'denied', 'FORBIDDEN'],
  ])
})

test('AUDIT-4 - further denials of an action to a caller within the time are one entry with a count', async () => {
  const server = await manage({ audit: { gatherMs: 60_000 } })
  const { audit } = server.api
  const observer = brokerAudit(audit, { messages: false })
  const app = { clientId: 'app', address: '10.0.0.1' }
  for (let n = 0; n < 5_000; n++) observer.denied?.('send', 'queues', `orders.${n}`, app)
  for (let n = 0; n < 13; n++) observer.denied?.('read', 'events_store', 'log', app)
  observer.denied?.('send', 'queues', 'orders', { clientId: 'other' })
  for (let n = 0; n < 1_500; n++) observer.denied?.('call', 'agents', 'writer', { clientId: `caller ${n}` })
  await entries(server, 20, '?client=app')
  await audit.close(GRACE_MS)
  const page = await readAudit(server.system, {}, { limit: 2_000, cursor: undefined })
  const ofApp = page.items.filter(({ client }) => client === 'app')
  expect(ofApp.map(({ action, type, channel, address, count }) => [action, type, channel, address, count])).toEqual([
    ['read', 'events_store', 'log', '10.0.0.1', 3],
    ['send', 'queues', undefined, '10.0.0.1', 4_990],
    ...Array.from({ length: 10 }, () => ['read', 'events_store', 'log', '10.0.0.1', undefined]),
    ...Array.from({ length: 10 }, (_, n) => ['send', 'queues', `orders.${9 - n}`, '10.0.0.1', undefined]),
  ])
  expect(page.items).toHaveLength(22 + 1 + 997 + 1)
  expect(page.items[0]).toMatchObject({ client: '', action: 'denied', outcome: 'denied', count: 503 })
})

test('AUDIT-5 - the log stays within its size, and removes the oldest entries first', async () => {
  const { api, system } = await manage({ audit: { maxBytes: 50_000 } })
  for (let n = 0; n < 1_000; n++) api.audit.record({ client: 'app', action: `${n}`, outcome: 'success' })
  await api.audit.close(GRACE_MS)
  const { eventsStore } = await system.channels.info('events_store', AUDIT_CHANNEL)
  expect(eventsStore?.bytes).toBeLessThanOrEqual(50_000)
  expect(eventsStore?.bytes).toBeGreaterThan(40_000)
  const { items } = await readAudit(system, {}, { limit: 1_000, cursor: undefined })
  expect(items.map(({ action }) => action)).toEqual(items.map((_, i) => `${999 - i}`))
})

test('AUDIT-3 - audits messages only if enabled', async () => {
  const server = await manage({ audit: { messages: true } })
  const { queues } = server.broker.as({ clientId: 'app' })
  await queues.send('q', { body: text('secret') })
  await queues.receive('q')
  const list = await entries(server, 2)
  expect(list.map(({ client, action, type, channel }) => [client, action, type, channel])).toEqual([
    ['app', 'deliver', 'queues', 'q'],
    ['app', 'send', 'queues', 'q'],
  ])
  expect(JSON.stringify(list)).not.toContain('secret')
})

test('AUDIT-4 - failed authentications are one entry for an address', async () => {
  const server = await manage({ authenticator: tokens(), audit: { gatherMs: 60_000 } })
  for (let n = 0; n < 5; n++) await server.get('/api/snapshot', { authorization: 'Bearer !!! stolen' })
  const { audit } = server.api
  audit.authenticationFailed('10.0.0.9', 'mcp')
  await audit.close(GRACE_MS)
  const list = await entries(server, 2, '?action=authentication_failed', ADMIN)
  expect(list.map(({ client, address, detail, outcome, count }) => [client, address, detail, outcome, count])).toEqual([
    ['', '10.0.0.9', 'on mcp', 'denied', 1],
    ['', '127.0.0.1', 'on management', 'denied', 5],
  ])
  expect(JSON.stringify(list)).not.toContain('stolen')
})

test('AUDIT-4 - failed authentications are written when the time is over', async () => {
  const server = await manage({ authenticator: tokens(), audit: { gatherMs: 300 } })
  for (let n = 0; n < 2; n++) server.api.audit.authenticationFailed('10.0.0.9', 'mcp')
  const [entry] = await entries(server, 1, '?action=authentication_failed', ADMIN)
  expect(entry).toMatchObject({ address: '10.0.0.9', outcome: 'denied', count: 2 })
})

test('AUDIT-4 - addresses without number share one entry', async () => {
  const server = await manage({ audit: { gatherMs: 60_000 } })
  for (let n = 0; n < 1100; n++) server.api.audit.authenticationFailed(`10.0.${n >> 8}.${n & 255}`, 'mcp')
  server.api.audit.authenticationFailed('10.0.0.0', 'mcp')
  const recorded: unknown[] = []
  server.broker.observe({
    accepted: (_type, _channel, _caller, { body }) => recorded.push(JSON.parse(new TextDecoder().decode(body))),
  })
  await server.api.audit.close(GRACE_MS)
  expect(recorded).toHaveLength(1001)
  expect(recorded).toContainEqual(expect.objectContaining({ address: 'others', count: 100 }))
  expect(recorded).toContainEqual(expect.objectContaining({ address: '10.0.0.0', count: 2 }))
})

function time(milliseconds: number): string {
  return encodeURIComponent(new Date(milliseconds).toISOString())
}

test('AUDIT-5 - the log is filtered by client, action, channel, outcome and time, and paged by cursor', async () => {
  const server = await manage()
  const { audit } = server.api
  for (let n = 0; n < 500; n++) {
    audit.record({
      client: `c${n % 5}`,
      action: n % 2 === 0 ? 'reload_policy' : 'register_agent',
      outcome: n % 3 === 0 ? 'failure' : 'success',
      ...(n % 2 === 0 ? { channel: `orders.${n}` } : { agent: `agent-${n}` }),
    })
  }
  await entries(server, 1, '?channel=agent-499')
  const total = async (query: string) => {
    let items = 0
    for (let cursor: string | null = ''; cursor !== null;) {
      const { data }: { data: { items: unknown[]; next_cursor: string | null } } = await server.get(
        `/api/audit${query}${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      items += data.items.length
      cursor = data.next_cursor
    }
    return items
  }
  expect(await total('?limit=7')).toBe(500)
  expect(await total('?limit=1000&client=c1')).toBe(100)
  expect(await total('?limit=10&action=reload_policy')).toBe(250)
  expect(await total('?limit=10&outcome=failure')).toBe(167)
  expect(await total('?limit=10&channel=agent-4')).toBe(55)
  expect(await total('?limit=10&channel=orders.1?')).toBe(5)
  expect(await total('?limit=10&client=nobody')).toBe(0)
  const now = Date.now()
  expect(await total(`?limit=10&from=${time(now - 60_000)}&to=${time(now + 1000)}`)).toBe(500)
  expect(await total(`?limit=10&from=${time(now + 60_000)}`)).toBe(0)
  expect(await total(`?limit=10&to=${time(now - 60_000)}`)).toBe(0)
  expect(await server.get('/api/audit?cursor=bm9uZQ')).toMatchObject({
    error: true,
    data: { code: 'PARAMETER_INVALID' },
  })
  // A number that nothing can be counted with.
  const forged = Buffer.from('before 9999999999999999').toString('base64url')
  expect(await server.get(`/api/audit?cursor=${forged}`)).toMatchObject({ data: { code: 'PARAMETER_INVALID' } })
  expect(await server.get('/api/audit?outcome=maybe')).toMatchObject({
    error_string: expect.stringContaining('success, failure, denied'),
  })
})

test('AUDIT-5 - entries past their age are removed', async () => {
  let now = Date.now()
  const server = await manage({ audit: { maxAgeSeconds: 60 }, now: () => now })
  server.api.audit.record({ client: 'a', action: 'x', outcome: 'success' })
  await entries(server, 1)
  now += 61_000
  expect(await entries(server, 0)).toEqual([])
})

test('AUDIT-6 - entries beyond the buffer are dropped and counted, and the log reports the count', async () => {
  const server = await manage({ audit: { maxBuffered: 50 }, started: false })
  const { audit } = server.api
  for (let n = 0; n < 80; n++) audit.record({ client: 'a', action: `x${n}`, outcome: 'success' })
  expect(audit.dropped).toBe(30)
  server.start()
  const list = await entries(server, 51)
  expect(list[0]).toMatchObject({ action: 'audit_dropped', outcome: 'failure', count: 30 })
  expect(list.at(-1)).toMatchObject({ action: 'x0' })
  expect(await server.get('/api/snapshot')).toMatchObject({ data: { audit_dropped: 30 } })
})

/** The same engine, but for appends, which fail for as long as `down` says so. */
function flaky(engine: Engine, down: () => boolean): Engine {
  const { name, capabilities, limits, settings, queues, events, eventsStore, requests, channels } = engine
  return {
    name,
    capabilities,
    limits,
    settings,
    queues,
    events,
    requests,
    channels,
    eventsStore: {
      append: async (channel, message) => {
        const stored = await eventsStore.append(channel, message)
        // Stored all the same, as when the answer of a cluster is lost.
        if (down()) throw new BrokerError('ENGINE_UNAVAILABLE', 'the disk is full')
        return stored
      },
      read: (channel, options) => eventsStore.read(channel, options),
      readLatest: (channel, options) => eventsStore.readLatest(channel, options),
      getLast: (channel, key) => eventsStore.getLast(channel, key),
      subscribe: (channel, start, options, listener) => eventsStore.subscribe(channel, start, options, listener),
    },
    settingProblem: (entry) => engine.settingProblem(entry),
    health: () => engine.health(),
    stats: () => engine.stats(),
    close: () => engine.close(),
  }
}

test('AUDIT-6 - a store that fails neither blocks nor fails a caller; entries are written once when it works again', async () => {
  const server = await manage({ started: false })
  let down = true
  const { broker, system } = createBroker(flaky(server.engine, () => down))
  const log = new AuditLog({ retryMs: 20 })
  log.open(system)
  for (let n = 0; n < 300; n++) log.record({ client: 'a', action: `x${n}`, outcome: 'success' })
  const tried = await new Promise((resolve) => {
    const stop = broker.observe({ failed: (_action, _type, channel) => (stop(), resolve(channel)) })
  })
  expect(tried).toBe(AUDIT_CHANNEL)
  down = false
  server.start()
  const list = await entries(server, 300, '?limit=1000')
  expect(list.map(({ action }) => action)).toEqual(Array.from({ length: 300 }, (_, n) => `x${299 - n}`))
  await log.close()
  expect(log.dropped).toBe(0)
})

test('AUDIT-6 - waiting entries are written when the server closes', async () => {
  const server = await manage()
  const recorded: string[] = []
  server.api.audit.record({ client: 'a', action: 'first', outcome: 'success' })
  // The time of the close is short: the channel exists before.
  await entries(server, 1)
  server.broker.observe({ accepted: (_type, channel) => recorded.push(channel) })
  for (let n = 0; n < 300; n++) server.api.audit.record({ client: 'a', action: 'x', outcome: 'success' })
  await server.api.finish()
  expect(recorded.filter((channel) => channel === AUDIT_CHANNEL)).toHaveLength(300)
  server.api.audit.record({ client: 'a', action: 'late', outcome: 'success' })
  expect(server.api.audit.dropped).toBe(1)
})

test('AUDIT-6 - closing does not wait for a store that never answers', async () => {
  const { engine, system } = await manage()
  const log = new AuditLog({ retryMs: 10_000 })
  await engine.close()
  log.open(system)
  log.record({ client: 'a', action: 'x', outcome: 'success' })
  await new Promise((resolve) => setTimeout(resolve, 20))
  await log.close(100)
  expect(log.dropped).toBe(1)
})

test('AUDIT-6 - entries that the store did not accept before the end are counted and reported', async () => {
  const { system } = await manage()
  const reported: string[] = []
  const log = new AuditLog({ failed: (error) => void reported.push(String(error)) })
  const stuck = { create: () => new Promise(() => {}) }
  log.open(Object.assign(Object.create(system), { channels: stuck }))
  for (let n = 0; n < 300; n++) log.record({ client: 'a', action: 'x', outcome: 'success' })
  await log.close(50)
  expect(log.dropped).toBe(300)
  expect(reported).toEqual(['Error: 300 entries lost: the store did not accept them before the shutdown'])
})
