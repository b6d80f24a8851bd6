import { once } from 'node:events'
import { request as httpRequest } from 'node:http'

import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, onTestFinished, test } from 'vitest'

import type { RegistryRequestEvent } from '../src/index.ts'
import { REGISTRY_ERRORS, registryRoutes } from '../src/index.ts'
import { Faults } from './faults.ts'
import { card, openBench } from './registry-bench.ts'
import { openServer } from './registry-server.ts'

/** `Bearer NAME` is NAME; `Bearer root` is an Admin; the verifier itself fails for `Bearer broken`. */
const authenticator: Authenticator = {
  async authenticate({ headers }) {
    const name = headers.authorization?.replace('Bearer ', '')
    if (name === 'broken') throw new Error('the key server is at https://secret.example')
    if (!name) throw new AuthenticationError('no token')
    return { clientId: name, ...(name === 'root' ? { roles: ['Admin'] } : {}) }
  },
}
const as = (name: string): Record<string, string> => ({ authorization: `Bearer ${name}` })

test('REG-1, R1 - routes: register answers the enriched card, and 400, 403 or 409 with code, message and details', async () => {
  const { call, registry } = await openServer({ authenticator }, { maxAgents: 1 })
  const registered = await call('POST /agents/register', card('a1', { 'x-own': 1 }), as('alice'))
  expect(registered.status).toBe(200)
  expect(registered.body).toEqual(registry.get('a1'))
  expect(registered.body).toMatchObject({ 'x-own': 1, registered_by: 'alice', protocolVersions: ['1.0'] })
  expect(registered.headers.get('x-host')).toBe('kept')
  expect(registered.headers.get('content-length')).toBe(String(Buffer.byteLength(registered.text)))
  const bad = await call('POST /agents/register', { agent_id: 'A', skills: [{}] }, as('alice'))
  expect([bad.status, bad.body.error, Object.keys(bad.body)]).toEqual([
    400,
    'CARD_INVALID',
    ['error', 'message', 'details'],
  ])
  expect(bad.body.details.map(({ field }: { field: string }) => field)).toEqual([
    'agent_id',
    'name',
    'url',
    'skills[0].id',
    'skills[0].name',
  ])
  const foreign = await call('POST /agents/register', card('a1'), as('bob'))
  expect([foreign.status, foreign.body.error, foreign.body.details]).toEqual([403, 'AGENT_OWNED', []])
  expect(foreign.text).not.toContain('alice')
  const full = await call('POST /agents/register', card('a2'), as('bob'))
  expect([full.status, full.body.error, full.body.details]).toEqual([409, 'AGENT_LIMIT', [{ limit: 1 }]])
  expect((await call('POST /agents/register', card('a1', { name: 'B' }), as('root'))).body).toMatchObject({
    registered_by: 'alice',
    name: 'B',
  })
})

const tagged = (id: string, ...tags: string[]) =>
  card(id, {
    skills: [
      { id: 's', name: 'S', tags },
      { id: 't', name: 'T' },
    ],
  })

test('REG-2, R3 - routes: the list is a bare array in the order of agent_id, by tags and limit', async () => {
  const { call } = await openServer()
  expect((await call('GET /agents')).text).toBe('[]')
  for (const each of [tagged('c3', 'math'), tagged('a1', 'math', 'art'), tagged('b2', 'art'), card('d4')]) {
    expect((await call('POST /agents/register', each)).status).toBe(200)
  }
  const ids = async (query: string): Promise<readonly string[]> => {
    const { status, body } = await call(`GET /agents${query}`)
    expect(status, query).toBe(200)
    return body.map(({ agent_id }: { agent_id: string }) => agent_id)
  }
  expect(await ids('')).toEqual(['a1', 'b2', 'c3', 'd4'])
  expect(await ids('?skill_tags=math')).toEqual(['a1', 'c3'])
  expect(await ids('?skill_tags=math,art')).toEqual(['a1', 'b2', 'c3'])
  expect(await ids('?skill_tags=+art+,%20none')).toEqual(['a1', 'b2'])
  expect(await ids('?skill_tags=none')).toEqual([])
  expect(await ids('?skill_tags=')).toEqual(['a1', 'b2', 'c3', 'd4'])
  expect(await ids('?limit=2')).toEqual(['a1', 'b2'])
  expect(await ids('?limit=2&skill_tags=art,math')).toEqual(['a1', 'b2'])
  expect(await ids('?limit=9007199254740991')).toHaveLength(4)
  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=',
    'limit=1.5',
    'limit=1e3',
    'limit=two',
    'limit=9007199254740992',
    'limit=1&limit=2',
    'skill_tags=a&skill_tags=b',
    'tags=a',
  ]) {
    const { status, body } = await call(`GET /agents?${query}`)
    expect([status, body.error, body.details.length], query).toEqual([400, 'PARAMETER_INVALID', 1])
  }
  const both = await call('GET /agents?limit=0&x=1')
  expect(both.body.details).toEqual([
    { parameter: 'x', given: 'unknown', allowed: 'one of skill_tags, limit, cursor' },
    { parameter: 'limit', given: '"0"', allowed: 'a whole number from 1 to 9007199254740991' },
  ])
})

test('REG-3, REG-4, REG-5 - routes: get, deregister and delete, and 404 for an unknown agent', async () => {
  const { call, registry } = await openServer()
  const longest = `a${'b'.repeat(126)}c`
  for (const id of ['a1', longest, 'register', 'heartbeat']) {
    await call('POST /agents/register', card(id))
    const shown = await call(`GET /agents/${id}`)
    expect([shown.status, shown.body]).toEqual([200, registry.get(id)])
    expect(await call(`DELETE /agents/${id}`)).toMatchObject({ status: 200, body: { ok: true }, text: '{"ok":true}' })
    await call('POST /agents/register', card(id))
    expect(await call('POST /agents/deregister', { agent_id: id })).toMatchObject({ status: 200, body: { ok: true } })
    for (const gone of [
      await call(`GET /agents/${id}`),
      await call(`DELETE /agents/${id}`),
      await call('POST /agents/deregister', { agent_id: id }),
    ]) {
      expect([gone.status, gone.body.error, gone.body.details]).toEqual([404, 'AGENT_NOT_FOUND', []])
    }
  }
  for (const path of ['/agents/NO', '/agents/%2e%2e', '/agents/a%2Fb', `/agents/${'x'.repeat(3_000)}`]) {
    expect((await call(`GET ${path}`)).status, path).toBe(404)
  }
  for (const body of ['7', '[]', '{}', '{"agent_id":7}', 'null']) {
    const answer = await call('POST /agents/deregister', body)
    expect([answer.status, answer.body.error], body).toEqual([400, 'BODY_INVALID'])
  }
})

test('REG-6, STATE-3, R4 - routes: a heartbeat is ok, 400 for an unknown agent or a bad body, 403 for another’s agent', async () => {
  const { call, registry } = await openServer({ authenticator })
  await call('POST /agents/register', card('a1'), as('alice'))
  const before = registry.get('a1')?.last_seen ?? ''
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(await call('POST /agents/heartbeat', { agent_id: 'a1' }, as('alice'))).toMatchObject({
    status: 200,
    body: { ok: true },
  })
  expect((await call('GET /agents/a1', undefined, as('bob'))).body.last_seen > before).toBe(true)
  expect(await call('POST /agents/heartbeat', { agent_id: 'a1' }, as('bob'))).toMatchObject({
    status: 403,
    body: { error: 'AGENT_OWNED' },
  })
  for (const body of [{ agent_id: 'a2' }, { agent_id: 'NO' }, { agent_id: '' }]) {
    expect(await call('POST /agents/heartbeat', body, as('alice'))).toMatchObject({
      status: 400,
      body: { error: 'AGENT_NOT_FOUND' },
    })
  }
  for (const body of ['', '{', '{}', '[]', '{"agent_id":null}', '"a1"']) {
    expect(await call('POST /agents/heartbeat', body, as('alice')), body).toMatchObject({
      status: 400,
      body: { error: 'BODY_INVALID' },
    })
  }
})

const sized = (filler: number): string => JSON.stringify(card('a2', { filler: 'x'.repeat(filler) }))

test('R1 - routes: bodies are JSON, not encoded and not too large', async () => {
  const { call, base, registry } = await openServer({ maxBodyBytes: 300_000 })
  const valid = JSON.stringify(card('a1'))
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    '',
    'application/json; charset=latin1',
    'a/b/c',
  ]) {
    const refused = await call('POST /agents/register', valid, { 'content-type': type })
    expect([refused.status, refused.body?.error], type).toEqual([415, 'MEDIA_TYPE_UNSUPPORTED'])
  }
  expect((await call('POST /agents/register', valid, { 'content-encoding': 'gzip' })).status).toBe(415)
  expect(
    (await call('POST /agents/register', valid, { 'content-type': 'application/json; charset=utf-8' })).status,
  ).toBe(200)
  for (const body of ['', '{', 'x', `${valid}x`, '\uFEFF{}']) {
    expect(await call('POST /agents/register', body), body).toMatchObject({
      status: 400,
      body: { error: 'BODY_INVALID' },
    })
  }
  const raw = await fetch(`${base}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from([0x7b, 0xff, 0x7d]),
  })
  expect([raw.status, await raw.json()]).toEqual([
    400,
    { error: 'BODY_INVALID', message: expect.any(String), details: [] },
  ])
  for (const filler of [66_000, 140_000, 290_000]) {
    expect(await call('POST /agents/register', sized(filler)), String(filler)).toMatchObject({
      status: 400,
      body: { error: 'CARD_INVALID', details: [{ field: 'card' }] },
    })
  }
  expect(await call('POST /agents/register', sized(301_000))).toMatchObject({
    status: 413,
    body: { error: 'BODY_TOO_LARGE', details: [{ limit: 300_000 }] },
  })
  expect((await call('POST /agents/heartbeat', `{"agent_id":"${'x'.repeat(140_000)}"}`)).status).toBe(413)
  expect((await call('POST /agents/register', `${' '.repeat(60_000)}${valid}`)).status).toBe(200)
  const deep = `{"agent_id":"a3","name":"A","url":"http://a","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  expect(await call('POST /agents/register', deep)).toMatchObject({
    status: 400,
    body: { error: 'BODY_INVALID', message: 'the body is nested deeper than 128 levels' },
  })
  expect(registry.size).toBe(1)
  const small = await openServer({ maxBodyBytes: 100 })
  expect((await small.call('POST /agents/register', sized(200))).status).toBe(413)
})

test('REG-9, S5 - routes: without valid credentials every route is 401, and no body is read', async () => {
  const { call, registry, base } = await openServer({ authenticator })
  for (const line of [
    'POST /agents/register',
    'GET /agents',
    'GET /agents/a1',
    'POST /agents/deregister',
    'DELETE /agents/a1',
    'POST /agents/heartbeat',
  ] as const) {
    const refused = await call(line, line.startsWith('POST') ? '{' : undefined)
    expect(refused.status, line).toBe(401)
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="signalbox"')
    expect(refused.body).toEqual({ error: 'UNAUTHENTICATED', message: 'Authentication failed', details: [] })
  }
  expect(registry.size).toBe(0)
  // The answer is there before the body is.
  const unsent = httpRequest(`${base}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': '1000' },
  })
  unsent.flushHeaders()
  const [response] = await once(unsent, 'response')
  expect(response.statusCode).toBe(401)
  unsent.on('error', () => {}).destroy()
})

test('REG-9 - routes: a failure of the verifier is an internal error without details', async () => {
  const failures: unknown[] = []
  const { call } = await openServer({ authenticator, hooks: { failed: (error) => failures.push(error) } })
  const broken = await call('GET /agents', undefined, as('broken'))
  expect([broken.status, broken.body]).toEqual([500, { error: 'INTERNAL', message: 'internal error', details: [] }])
  expect(failures).toHaveLength(1)
})

test('S5, S6, R1 - routes: origins that are not trusted are 403 before anything else', async () => {
  const { call } = await openServer({ authenticator, trustedOrigins: ['https://app.example'] })
  const refused = await call('POST /agents/register', '{', { origin: 'https://evil.example' })
  expect([refused.status, refused.body]).toEqual([
    403,
    { error: 'ORIGIN_REFUSED', message: 'origin not allowed; add it to CONNECTORSA2_A_TRUSTED_ORIGINS', details: [] },
  ])
  expect((await call('GET /agents', undefined, { ...as('alice'), origin: 'https://app.example' })).status).toBe(200)
  const auto = await openServer()
  expect((await auto.call('GET /agents', undefined, { origin: 'http://localhost:3000' })).status).toBe(200)
  expect((await auto.call('GET /agents', undefined, { origin: 'http://other.example' })).status).toBe(403)
})

test('S5, R1 - routes: other methods are 405, other paths 404 in plain text without authentication', async () => {
  const { call } = await openServer({ authenticator })
  for (const [line, allow] of [
    ['POST /agents', 'GET'],
    ['PUT /agents/a1', 'GET, DELETE'],
    ['POST /agents/a1', 'GET, DELETE'],
    ['PUT /agents/register', 'POST, GET, DELETE'],
  ] as const) {
    const refused = await call(line, '{}')
    expect([refused.status, refused.headers.get('allow'), refused.body.error], line).toEqual([
      405,
      allow,
      'METHOD_NOT_ALLOWED',
    ])
  }
  for (const path of ['/agents/', '/agents/a1/b', '/agents/a1/']) {
    const missing = await call(`GET ${path}`)
    expect([missing.status, missing.headers.get('content-type')], path).toEqual([404, 'text/plain; charset=utf-8'])
  }
})

test('R1 - routes: a store that is away is 503, with the code of the Broker', async () => {
  const faults = new Faults()
  const { call } = await openServer({}, {}, faults)
  faults.away()
  expect(await call('POST /agents/register', card('a1'))).toMatchObject({
    status: 503,
    body: { error: 'ENGINE_UNAVAILABLE', details: [] },
  })
})

test('routes - every request is reported once; a body that breaks off leaves nothing behind', async () => {
  const events: RegistryRequestEvent[] = []
  const { call, base, routes } = await openServer({ hooks: { requestFinished: (finished) => events.push(finished) } })
  await call('POST /agents/register', card('a1'))
  await call('GET /agents/a2')
  await call('DELETE /agents/a1')
  await call('PUT /agents')
  const { socket } = new RawConnection(base)
  socket.write(
    'POST /agents/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    () => socket.destroy(),
  )
  while (events.length < 5) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(events.map(({ route, outcome }) => `${route} ${outcome}`)).toEqual([
    'register success',
    'get error',
    'delete success',
    'unknown error',
    'register disconnected',
  ])
  for (const { seconds } of events) expect(seconds).toBeGreaterThan(0)
  await routes.close(10_000)
  expect(await call('GET /agents')).toMatchObject({ status: 503, body: { error: 'SHUTTING_DOWN' } })
})

test('routes - without Fastify the handler serves a plain server', async () => {
  const { node } = await openBench()
  const endpoints = registryRoutes(await node())
  const server = await testServer((request, response) => endpoints.handler(request, response, { 'x-more': 'yes' }))
  onTestFinished(() => endpoints.close())
  const base = server.url
  const response = await fetch(`${base}/agents`)
  expect([response.status, response.headers.get('x-more'), await response.json()]).toEqual([200, 'yes', []])
  expect((await fetch(`${base}/other`)).status).toBe(404)
  expect(() => registryRoutes(null as never, { maxBodyBytes: 0 })).toThrow(RangeError)
  expect(Object.values(REGISTRY_ERRORS).every(({ status }) => status >= 400)).toBe(true)
})
