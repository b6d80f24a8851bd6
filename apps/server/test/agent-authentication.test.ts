import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { anonymousAuthenticator } from '@signalbox/http-kit'
import { resolveBySystem } from '@signalbox/http-kit/internal'
import { testFolder } from '@signalbox/testkit/test-folder'
import type { JWTPayload } from 'jose'
import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'

import { AgentAudit, openAgents } from '../src/agents/open-agents.ts'
import { createConfig } from '../src/config/load.ts'
import { Health } from '../src/health/health.ts'
import { openFrontDoor } from '../src/limits/front-door.ts'
import { listen } from '../src/listeners/address.ts'
import { createSharedRoutes } from '../src/listeners/shared-listener.ts'
import { SharedServer } from '../src/listeners/shared-server.ts'
import { Metrics } from '../src/metrics/metrics.ts'
import { callAgent, postJson, register, startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const one = issuer()
const AS_JSON = { 'content-type': 'application/json' }

/** Calls with a token of this caller's. */
async function callerOf(base: string, clientId: string, claims: JWTPayload = {}) {
  const authorization = await one.bearer(clientId, claims)
  return {
    authorization,
    post: (path: string, body: unknown, headers: Record<string, string> = {}) =>
      postJson(`${base}${path}`, body, { authorization, ...headers }),
    get: (path: string) => fetch(`${base}${path}`, { headers: { authorization } }),
    remove: (path: string) => fetch(`${base}${path}`, { method: 'DELETE', headers: { authorization } }),
    tool: (name: string, args: object, headers: Record<string, string> = {}) =>
      rpc(base, 'tools/call', { name, arguments: args }, { authorization, ...headers }),
  }
}

function card(agent_id: string, url = 'http://127.0.0.1:9/'): object {
  return { agent_id, name: agent_id, url }
}

function message(method: string, id?: unknown): object {
  return { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params: {} }
}

function refused(id: string): unknown {
  return [200, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32010,"message":"Authentication failed"}}`]
}

test('S1, S5 - without a valid token /a2a answers -32010 with the id of the request, and no agent gets it', async () => {
  const { http } = await serve(trusting(one))
  const agent = await startAgent(withResult('reached'))
  const owner = await callerOf(http.url, 'owner')
  expect((await owner.post('/agents/register', card('agent-1', agent.url))).status).toBe(200)
  const expired = await one.bearer('alice', { exp: Math.floor(Date.now() / 1000) - 60 })
  const bad = [undefined, expired, await issuer().bearer('alice'), 'Basic YTpi', `${owner.authorization}x`]
  for (const authorization of bad) {
    const send = async (body: string, agentId = 'agent-1') => {
      const headers = { ...AS_JSON, ...(authorization === undefined ? {} : { authorization }) }
      const response = await fetch(`${http.url}/a2a/${agentId}`, { method: 'POST', headers, body })
      return [response.status, await response.text()]
    }
    for (const id of ['7', '"seven"', '12345678901234567890']) {
      const body = `{"jsonrpc":"2.0","id":${id},"method":"message/send","params":{}}`
      expect(await send(body)).toEqual(refused(id))
      expect(await send(body, 'nobody')).toEqual(refused(id))
      expect(await send(body.replace('message/send', 'message/stream'))).toEqual(refused(id))
    }
    expect(await send(JSON.stringify(message('message/send')))).toEqual(refused('null'))
    expect(await send('garbage')).toEqual(refused('null'))
  }
  expect(agent.asked).toEqual([])
})

test('S1 - without a valid token /agents says 401 with a challenge; cards and probes are public', async () => {
  const { http } = await serve(trusting(one))
  const owner = await callerOf(http.url, 'owner')
  expect((await owner.post('/agents/register', card('agent-1'))).status).toBe(200)
  for (const [method, path, body] of [
    ['GET', '/agents'],
    ['GET', '/agents/agent-1'],
    ['POST', '/agents/register', card('agent-2')],
    ['POST', '/agents/heartbeat', { agent_id: 'agent-1' }],
    ['POST', '/agents/deregister', { agent_id: 'agent-1' }],
    ['DELETE', '/agents/agent-1'],
  ] as const) {
    for (const authorization of [undefined, await issuer().bearer('owner', { roles: ['Admin'] })]) {
      const response = await fetch(`${http.url}${path}`, {
        method,
        headers: { ...(body && AS_JSON), ...(authorization === undefined ? {} : { authorization }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      expect([response.status, response.headers.get('www-authenticate')], `${method} ${path}`).toEqual([
        401,
        'Bearer realm="signalbox"',
      ])
      await response.text()
    }
  }
  for (const path of [
    '/.well-known/agent-card.json',
    '/a2a/agent-1/.well-known/agent-card.json',
    '/.well-known/jwks.json',
    '/ping',
    '/health',
    '/ready',
  ]) {
    expect((await fetch(`${http.url}${path}`)).status, path).toBe(200)
  }
  expect(await (await owner.get('/agents')).json()).toMatchObject([{ agent_id: 'agent-1' }])
})

test('S2, A5 - registered_by and X-Broker-Caller-ID are the ClientID of the token, on every route', async () => {
  const { http } = await serve(trusting(one))
  const agent = await startAgent((asked, response) => {
    if (asked.method !== 'message/stream') return withResult('yes')(asked, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: task.done\ndata: {"type":"done","payload":{}}\n\n')
  })
  const owner = await callerOf(http.url, 'owner', { sub: 'somebody else' })
  const mine = await owner.post('/agents/register', { ...card('agent-1', agent.url), registered_by: 'root' })
  expect(await mine.json()).toMatchObject({ registered_by: 'owner' })
  const alice = await callerOf(http.url, 'alice')
  // Nobody is believed who only says so.
  const forged = { 'x-broker-caller-id': 'root' }
  expect((await alice.post('/a2a/agent-1', message('message/send', 1), forged)).status).toBe(200)
  expect((await alice.post('/a2a/agent-1', message('a/notification'), forged)).status).toBe(202)
  await (await alice.post('/a2a/agent-1', message('message/stream', 1), forged)).text()
  await (await alice.get('/a2a/agent-1/stream?message=hi')).text()
  const ok = { result: { isError: false } }
  const to = { agent_id: 'agent-1' }
  expect(await alice.tool('agent_send', { ...to, message: 'hi' }, forged)).toMatchObject(ok)
  expect(await alice.tool('agent_send', { ...to, message: 'hi', blocking: false }, forged)).toMatchObject(ok)
  expect(await alice.tool('agent_query', { ...to, method: 'tasks/get' }, forged)).toMatchObject(ok)
  await expect.poll(() => agent.asked.length, { timeout: 20_000 }).toBe(7)
  for (const { method, headers } of agent.asked) {
    expect([method, headers['x-broker-caller-id'], headers.authorization]).toEqual([method, 'alice', undefined])
  }
  expect(agent.asked.map(({ method }) => method).toSorted()).toEqual([
    'a/notification',
    'message/send',
    'message/send',
    'message/send',
    'message/stream',
    'message/stream',
    'tasks/get',
  ])
})

test("R4, S3 - an agent is its owner's: others are 403, an Admin may act for the owner and does not become it", async () => {
  const { http } = await serve(trusting(one))
  const owner = await callerOf(http.url, 'owner')
  const first = await (await owner.post('/agents/register', card('agent-1'))).json()
  const acts = (caller: Awaited<ReturnType<typeof callerOf>>) => [
    () => caller.post('/agents/register', { ...card('agent-1'), name: 'changed' }),
    () => caller.post('/agents/heartbeat', { agent_id: 'agent-1' }),
    () => caller.post('/agents/deregister', { agent_id: 'agent-1' }),
    () => caller.remove('/agents/agent-1'),
  ]
  for (const other of [
    await callerOf(http.url, 'other'),
    await callerOf(http.url, 'other', { roles: ['ReadOnly', 'ReadWrite', 'admin'] }),
    // The name of another claim is not the caller's.
    await callerOf(http.url, 'other', { sub: 'owner', client_id: 'owner' }),
  ]) {
    for (const act of acts(other)) expect((await act()).status).toBe(403)
  }
  expect(await (await owner.get('/agents/agent-1')).json()).toEqual(first)
  const admin = await callerOf(http.url, 'admin', { roles: ['Admin'] })
  const [change, beat, deregister, remove] = acts(admin)
  expect(await (await change?.())?.json()).toMatchObject({ name: 'changed', registered_by: 'owner' })
  expect((await beat?.())?.status).toBe(200)
  expect((await owner.post('/agents/heartbeat', { agent_id: 'agent-1' })).status).toBe(200)
  expect((await deregister?.())?.status).toBe(200)
  expect((await owner.get('/agents/agent-1')).status).toBe(404)
  expect((await owner.post('/agents/register', card('agent-1'))).status).toBe(200)
  expect((await remove?.())?.status).toBe(200)
  // It belongs to nobody now.
  const next = await callerOf(http.url, 'other')
  expect(await (await next.post('/agents/register', card('agent-1'))).json()).toMatchObject({ registered_by: 'other' })
})

test('S9 - streams of /a2a end when the token that opened them expires, and the agent is notified', async () => {
  const { http } = await serve(trusting(one))
  const agent = await startAgent((asked, response) => {
    if (asked.method !== 'message/stream') return withResult('noted')(asked, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n')
  })
  const owner = await callerOf(http.url, 'owner')
  await owner.post('/agents/register', card('agent-1', agent.url))
  const lasting = await callerOf(http.url, 'alice')
  const stays = await lasting.post('/a2a/agent-1', message('message/stream', 1))
  // Tokens count whole seconds: this one ends within four, and not before three.
  const exp = Math.floor(Date.now() / 1000) + 4
  const alice = await callerOf(http.url, 'alice', { exp })
  const opened = await Promise.all([
    alice.post('/a2a/agent-1', message('message/stream', 1)),
    alice.get('/a2a/agent-1/stream?message=hi'),
  ])
  for (const stream of opened) {
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    const text = await stream.text()
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000)
    expect(text).toContain('event: task.status')
    expect(text.match(/event: task\.(?:error|done)/g)).toEqual(['event: task.error'])
  }
  const cancelled = () => agent.asked.filter(({ method }) => method === 'stream_cancel').length
  const gone = () => agent.gone.filter(({ method }) => method === 'message/stream').length
  await expect.poll(() => [cancelled(), gone()], { timeout: 20_000 }).toEqual([2, 2])
  await stays.body?.cancel()
})

test('timeouts - slow heads and bodies to /agents and /a2a are cut off, and block no other client', async () => {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  const metrics = new Metrics()
  const log = pino({ level: 'silent' })
  const { broker, system } = createBroker(engine)
  const config = createConfig()
  const agents = await openAgents(config, {
    system,
    engine,
    metrics,
    log,
    audit: new AgentAudit({ record() {} }),
    frontDoor: openFrontDoor(config, metrics.limits, log),
    resolve: resolveBySystem,
    ownAddresses: () => [],
  })
  const health = new Health('embedded', '0')
  const timeouts = { headersMs: 500, requestMs: 1_000, keepAliveMs: 5_000 }
  const shared = new SharedServer({ health, log, timeouts })
  const parts = { broker, system, agents, authenticator: anonymousAuthenticator, health, metrics, log }
  shared.prepare(await createSharedRoutes({ config, ...parts }))
  shared.open()
  onTestFinished(async () => {
    await shared.drain(1_000).closed
    await agents.registry.close()
    metrics[Symbol.dispose]()
    await engine.close()
  })
  const { url: base } = await listen(shared.server, 'http', { host: '127.0.0.1', port: 0 })
  const head = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n'
  const slow = [
    'POST /agents/register HTTP/1.1\r\nHost: x\r\n',
    `POST /agents/register HTTP/1.1\r\n${head}\r\n{"agent_id":`,
    `POST /agents/heartbeat HTTP/1.1\r\n${head}\r\n{`,
    'POST /a2a/agent-1 HTTP/1.1\r\nHost: x\r\n',
    `POST /a2a/agent-1 HTTP/1.1\r\n${head}\r\n{"jsonrpc":"2.0","id":1`,
    `POST /a2a/agent-1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"jso`,
  ].map((text) => {
    const connection = new RawConnection(base)
    void connection.write(text)
    return connection
  })
  const agent = await startAgent(withResult('quick'))
  await register(base, card('agent-1', agent.url))
  expect(await callAgent(base, 'agent-1', 'message/send')).toMatchObject({ result: 'quick' })
  await Promise.all(slow.map(({ closed }) => closed))
  expect(agent.asked).toHaveLength(1)
  expect(await callAgent(base, 'agent-1', 'message/send')).toMatchObject({ result: 'quick' })
})

test('S8 - two thousand idle connections, half of them with half a head, block no access to agents and tools', async () => {
  const { http } = await serve()
  const { port } = new URL(http.url)
  const idle: Socket[] = []
  onTestFinished(() => {
    for (const socket of idle) socket.destroy()
  })
  let lost = 0
  for (let hundreds = 0; hundreds < 20; hundreds++) {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const socket = connect(Number(port), '127.0.0.1')
        idle.push(socket)
        socket.on('error', () => lost++)
        return new Promise<void>((resolve) => {
          socket.once('connect', () => {
            if (i % 2 === 0) socket.write('POST /a2a/agent-1 HTTP/1.1\r\nHost: x\r\n')
            resolve()
          })
        })
      }),
    )
  }
  const agent = await startAgent(withResult('there'))
  await register(http.url, card('agent-1', agent.url))
  const calls = await Promise.all(Array.from({ length: 50 }, () => callAgent(http.url, 'agent-1', 'message/send')))
  for (const answer of calls) expect(answer).toMatchObject({ result: 'there' })
  expect(await rpc(http.url, 'ping', {})).toMatchObject({ result: {} })
  expect([idle.length, lost]).toEqual([2_000, 0])
})
