import { setTimeout as delay } from 'node:timers/promises'

import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { AgentInbox, InboxItem, RegistryRequestEvent } from '../src/index.ts'
import { documentedRegistryRoutes, InboxError, REGISTRY_ERRORS } from '../src/index.ts'
import { card, pullCard } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

/** `Bearer NAME` is NAME; `Bearer root` is an Admin. */
const authenticator: Authenticator = {
  async authenticate({ headers }) {
    const name = headers.authorization?.replace('Bearer ', '')
    if (!name) throw new AuthenticationError('no token')
    return { clientId: name, ...(name === 'root' ? { roles: ['Admin'] } : {}) }
  },
}
const as = (name: string): Record<string, string> => ({ authorization: `Bearer ${name}` })

const ITEM: InboxItem = {
  receipt: 'r1',
  taskId: 't1',
  contextId: 'c1',
  attempt: 1,
  leaseUntil: Date.UTC(2026, 0, 2),
  callerId: 'carol',
  headers: { traceparent: '00-1-2-01' },
  request: { message: { messageId: 'm1', parts: [{ text: 'hello' }] } },
}

/** Records its calls. A lease with a wait never gets an item. */
class TestInbox implements AgentInbox {
  readonly calls: unknown[] = []
  readonly waits: AbortSignal[] = []
  error: InboxError | undefined

  async lease(...[found, { signal, ...options }]: Parameters<AgentInbox['lease']>): Promise<readonly InboxItem[]> {
    this.calls.push(['lease', found.agent_id, found.offline, options])
    if (options.waitMs === 0) return [ITEM]
    this.waits.push(signal)
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  }

  async events(...[found, input]: Parameters<AgentInbox['events']>): ReturnType<AgentInbox['events']> {
    this.calls.push(['events', found.agent_id, input])
    if (this.error !== undefined) throw this.error
    const accepted = (input.offset ?? 0) + input.events.length
    return { accepted, cancelRequested: false, leaseUntil: ITEM.leaseUntil }
  }

  async nack(...[found, input]: Parameters<AgentInbox['nack']>): Promise<void> {
    this.calls.push(['nack', found.agent_id, input])
    if (this.error !== undefined) throw this.error
  }

  async status(): ReturnType<AgentInbox['status']> {
    return { waiting: 3, inFlight: 1, oldestSeconds: 7 }
  }
}

const RECEIPT = { receipt: 'r1' }
const BODIES = {
  lease: {},
  events: { ...RECEIPT, offset: 0, events: [] },
  nack: RECEIPT,
}

test('inbox routes - an agent leases its requests, sends events, and returns requests', async () => {
  const inbox = new TestInbox()
  const { call } = await openServer({ inbox })
  await call('POST /agents/register', pullCard('puller'))
  const leased = await call('POST /agents/puller/inbox/lease', { max: 32, lease_seconds: 3_600 })
  expect(leased.status).toBe(200)
  expect(leased.body).toEqual({
    items: [
      {
        receipt: 'r1',
        task_id: 't1',
        context_id: 'c1',
        attempt: 1,
        lease_until: '2026-01-02T00:00:00.000Z',
        caller_id: 'carol',
        headers: { traceparent: '00-1-2-01' },
        request: ITEM.request,
      },
    ],
  })
  await call('POST /agents/puller/inbox/lease', {})
  const event = { statusUpdate: { taskId: 't1' } }
  const events = { receipt: 'r1', offset: 2, events: [event, event] }
  expect(await call('POST /agents/puller/inbox/events', { ...events, lease_seconds: 10 })).toMatchObject({
    status: 200,
    body: { accepted: 4, cancel_requested: false, lease_until: '2026-01-02T00:00:00.000Z' },
  })
  await call('POST /agents/puller/inbox/events', { ...events, events: [] })
  expect((await call('POST /agents/puller/inbox/nack', RECEIPT)).body).toEqual({})
  const nack = { receipt: 'r1', delay_seconds: 5, reject: true, reason: 'broken' }
  expect(await call('POST /agents/puller/inbox/nack', nack)).toMatchObject({ status: 200, body: {} })
  expect((await call('GET /agents/puller/inbox')).body).toEqual({ waiting: 3, in_flight: 1, oldest_seconds: 7 })
  expect(inbox.calls).toEqual([
    ['lease', 'puller', undefined, { max: 32, waitMs: 0, leaseMs: 3_600_000 }],
    ['lease', 'puller', undefined, { max: 1, waitMs: 0, leaseMs: 60_000 }],
    ['events', 'puller', { receipt: 'r1', offset: 2, events: [event, event], leaseMs: 10_000 }],
    ['events', 'puller', { receipt: 'r1', offset: 2, events: [] }],
    ['nack', 'puller', { receipt: 'r1' }],
    ['nack', 'puller', { receipt: 'r1', delayMs: 5_000, reject: true, reason: 'broken' }],
  ])
})

test('inbox routes - a lease counts as a heartbeat, also for an agent that was parked', async () => {
  const inbox = new TestInbox()
  const { call, registry } = await openServer({ inbox }, { agentTtlSeconds: 0.5 })
  await call('POST /agents/register', pullCard('puller'))
  await until(() => registry.get('puller')?.offline === true)
  expect((await call('GET /agents/puller/inbox')).status).toBe(200)
  expect(registry.get('puller')?.offline).toBe(true)
  const before = registry.get('puller')?.last_seen ?? ''
  expect((await call('POST /agents/puller/inbox/lease', {})).status).toBe(200)
  expect(registry.get('puller')?.offline).toBeUndefined()
  expect((registry.get('puller')?.last_seen ?? '') > before).toBe(true)
  expect(inbox.calls).toEqual([['lease', 'puller', undefined, { max: 1, waitMs: 0, leaseMs: 60_000 }]])
})

test('inbox routes - events count as a heartbeat', async () => {
  const { call, registry } = await openServer({ inbox: new TestInbox() }, { agentTtlSeconds: 0.5 })
  await call('POST /agents/register', pullCard('puller'))
  await until(() => registry.get('puller')?.offline === true)
  expect((await call('POST /agents/puller/inbox/events', BODIES.events)).status).toBe(200)
  expect(registry.get('puller')?.offline).toBeUndefined()
})

test('inbox routes - only the owner and an Admin may call them', async () => {
  const { call } = await openServer({ inbox: new TestInbox(), authenticator })
  await call('POST /agents/register', pullCard('puller'), as('alice'))
  await call('POST /agents/register', card('pushed', { a2a: { offline: 'queue' } }), as('alice'))
  for (const id of ['puller', 'pushed']) {
    for (const [name, status] of [
      ['alice', 200],
      ['root', 200],
      ['bob', 403],
    ] as const) {
      for (const [route, body] of Object.entries(BODIES)) {
        const answer = await call(`POST /agents/${id}/inbox/${route}`, body, as(name))
        expect([answer.status, answer.body.error], route).toEqual([status, status === 403 ? 'AGENT_OWNED' : undefined])
      }
      expect((await call(`GET /agents/${id}/inbox`, undefined, as(name))).status).toBe(status)
    }
  }
  expect((await call('POST /agents/puller/inbox/lease', {})).status).toBe(401)
})

test('inbox routes - 404 says whether the agent is unknown or has no inbox', async () => {
  const { call } = await openServer({ inbox: new TestInbox() })
  await call('POST /agents/register', card('plain'))
  await call('POST /agents/register', card('durable', { a2a: { durable: true } }))
  for (const [id, error, message] of [
    ['nobody', 'AGENT_NOT_FOUND', /^no agent "nobody" is registered/],
    ['plain', 'INBOX_NOT_FOUND', /^the agent "plain" has no inbox; register it with .*"pull".*"offline"/],
    ['durable', 'INBOX_NOT_FOUND', /^the agent "durable" has no inbox/],
  ] as const) {
    for (const [route, body] of Object.entries(BODIES)) {
      const answer = await call(`POST /agents/${id}/inbox/${route}`, body)
      expect([answer.status, answer.body.error]).toEqual([404, error])
      expect(answer.body.message).toMatch(message)
    }
    expect(await call(`GET /agents/${id}/inbox`)).toMatchObject({ status: 404, body: { error } })
  }
})

test('inbox routes - bad input is refused with each member, its value and the allowed values', async () => {
  const inbox = new TestInbox()
  const { call } = await openServer({ inbox, maxBodyBytes: 400_000 })
  await call('POST /agents/register', pullCard('puller'))
  const problems = async (route: string, body: unknown) => {
    const answer = await call(`POST /agents/puller/inbox/${route}`, body)
    expect([answer.status, answer.body.error]).toEqual([400, 'BODY_INVALID'])
    return answer.body.details
  }
  expect(await problems('lease', { max: 33, wait_seconds: 60.5, lease_seconds: '9', wait: 1 })).toEqual([
    { field: 'max', given: '33', allowed: 'a whole number from 1 to 32' },
    { field: 'wait_seconds', given: '60.5', allowed: 'a whole number from 0 to 60' },
    { field: 'lease_seconds', given: '"9"', allowed: 'a whole number from 10 to 3600' },
    { field: '"wait"', given: 'unknown', allowed: 'one of max, wait_seconds, lease_seconds' },
  ])
  expect(await problems('events', { receipt: '', offset: -1, events: [{}, 7] })).toEqual([
    { field: 'receipt', given: '""', allowed: 'a string of 1 to 1024 characters' },
    { field: 'offset', given: '-1', allowed: 'a whole number from 0 to 9007199254740991' },
    { field: 'events[1]', given: '7', allowed: 'an object' },
  ])
  expect(await problems('events', { events: {} })).toEqual([
    { field: 'receipt', allowed: 'a string of 1 to 1024 characters' },
    { field: 'offset', allowed: 'a whole number from 0 to 9007199254740991' },
    { field: 'events', given: 'an object', allowed: 'an array of objects' },
  ])
  const nack = { receipt: 'r1', delay_seconds: 3_601, reject: 'yes', reason: 'x'.repeat(1_025) }
  expect(await problems('nack', nack)).toMatchObject([
    { field: 'delay_seconds', allowed: 'a whole number from 0 to 3600' },
    { field: 'reject', allowed: 'true or false' },
    { field: 'reason', allowed: 'a string of 0 to 1024 characters' },
  ])
  for (const body of ['', '{', '7', '[]', 'null']) {
    const answer = await call('POST /agents/puller/inbox/lease', body)
    expect([answer.status, answer.body.error], body).toEqual([400, 'BODY_INVALID'])
  }
  expect((await call('POST /agents/puller/inbox/lease', '{}', { 'content-type': 'text/plain' })).status).toBe(415)
  const text = 'x'.repeat(300_000)
  expect(await call('POST /agents/puller/inbox/events', { ...BODIES.events, events: [{ text }] })).toMatchObject({
    status: 200,
    body: { accepted: 1 },
  })
  expect(
    await call('POST /agents/puller/inbox/events', { ...BODIES.events, events: [{ text: text + text }] }),
  ).toMatchObject({ status: 413, body: { error: 'BODY_TOO_LARGE', details: [{ limit: 400_000 }] } })
})

test('inbox routes - a refusal of the inbox has its code and message', async () => {
  const inbox = new TestInbox()
  const { call } = await openServer({ inbox })
  await call('POST /agents/register', pullCard('puller'))
  for (const [code, status] of [
    ['LEASE_LOST', 409],
    ['RUN_ENDED', 409],
    ['OFFSET_WRONG', 409],
    ['EVENT_INVALID', 400],
  ] as const) {
    inbox.error = new InboxError(code, `refused: ${code}`)
    for (const route of ['events', 'nack'] as const) {
      const answer = await call(`POST /agents/puller/inbox/${route}`, BODIES[route])
      expect([answer.status, answer.body]).toEqual([status, { error: code, message: `refused: ${code}`, details: [] }])
    }
    expect(REGISTRY_ERRORS[code].status).toBe(status)
  }
})

test('inbox routes - a client that disconnects ends its wait, and a shutdown answers it without items', async () => {
  const inbox = new TestInbox()
  const finished: RegistryRequestEvent[] = []
  const { base, call, routes } = await openServer({
    inbox,
    hooks: { requestFinished: (event) => finished.push(event) },
  })
  await call('POST /agents/register', pullCard('puller'))
  const client = new AbortController()
  const waiting = fetch(`${base}/agents/puller/inbox/lease`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"wait_seconds":60}',
    signal: client.signal,
  })
  await until(() => inbox.waits.length === 1)
  client.abort()
  await expect(waiting).rejects.toThrow('abort')
  await until(() => inbox.waits[0]?.aborted === true && finished.length === 2)
  expect(finished[1]).toMatchObject({ route: 'inbox_lease', outcome: 'disconnected' })
  const answer = call('POST /agents/puller/inbox/lease', { wait_seconds: 60 })
  await until(() => inbox.waits.length === 2)
  await delay(20)
  await routes.close(10_000)
  expect(await answer).toMatchObject({ status: 200, body: { items: [] } })
})

test('inbox routes - other methods are 405, other paths 404, and without an inbox all of them are', async () => {
  const { call } = await openServer({ inbox: new TestInbox() })
  const refused = await call('GET /agents/puller/inbox/lease')
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST'])
  expect((await call('POST /agents/puller/inbox', {})).headers.get('allow')).toBe('GET')
  for (const path of ['inbox/', 'inbox/other', 'inbox/lease/', 'outbox']) {
    expect((await call(`GET /agents/puller/${path}`)).status, path).toBe(404)
  }
  const without = await openServer()
  await without.call('POST /agents/register', pullCard('puller'))
  for (const line of ['POST /agents/puller/inbox/lease', 'GET /agents/puller/inbox'] as const) {
    const answer = await without.call(line, line.startsWith('POST') ? {} : undefined)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/plain; charset=utf-8'])
  }
})

async function documentedInbox(inbox: boolean): Promise<readonly string[]> {
  const routes = await documentedRegistryRoutes({ inbox })
  return routes.map(({ method, path }) => `${method} ${path}`).filter((name) => name.includes('inbox'))
}

test('inbox routes - they are documented for a server that has them', async () => {
  expect(await documentedInbox(false)).toEqual([])
  expect(await documentedInbox(true)).toEqual([
    'POST /agents/{agent_id}/inbox/lease',
    'POST /agents/{agent_id}/inbox/events',
    'POST /agents/{agent_id}/inbox/nack',
    'GET /agents/{agent_id}/inbox',
  ])
})
