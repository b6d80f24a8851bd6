import cors from '@fastify/cors'
import { AuthenticationError, fastifyCorsOptions } from '@signalbox/http-kit'
import type { AuthenticationRequest, Authenticator } from '@signalbox/http-kit'
import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { mcpConnector } from '../src/fastify.ts'
import type { McpHost } from './mcp-host.ts'
import { UNREAD_KINDS } from './mcp-host.ts'
import { openHost, resultText, rpc, startHost, toolCall } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** Knows one token, at once or after a while, and counts how often it is asked. */
function tokens(token: string, clientId: string, later: boolean): Authenticator & { asked: number } {
  const authenticator = {
    asked: 0,
    authenticate({ headers }: AuthenticationRequest) {
      authenticator.asked++
      const valid = headers.authorization === `Bearer ${token}`
      if (later) return valid ? Promise.resolve({ clientId }) : Promise.reject(new AuthenticationError('no'))
      if (!valid) throw new AuthenticationError('no')
      return { clientId }
    },
  }
  return authenticator
}

describe('origins', () => {
  const authenticator = tokens('t', 'me', false)
  let host: McpHost

  beforeAll(async () => {
    host = await openHost({ authenticator, bindHost: '10.1.2.3' })
  })

  afterAll(() => host[Symbol.asyncDispose]())

  test.each([
    'http://evil.com',
    'null',
    'http://localhost.evil.com',
    'http://127.0.0.1.evil.com',
    'HTTP://LOCALHOST',
    'http://[::2]',
  ])(
    'S6, ORIGIN-5 - origin %s is 403 with -32600 on every method of the endpoint, before anything is asked or read',
    async (origin) => {
      const before = authenticator.asked
      for (const method of ['POST', 'GET', 'DELETE']) {
        const response = await fetch(host.url, {
          method,
          headers: { Origin: origin, 'Content-Type': 'application/json', Accept: 'text/event-stream' },
          ...(method === 'POST' ? { body: JSON.stringify(toolCall('queue_send', { channel: 'q', body: 'x' })) } : {}),
        })
        expect(response.status, method).toBe(403)
        expect(await response.json(), method).toEqual({
          jsonrpc: '2.0',
          id: null,
          error: { code: -32600, message: 'origin not allowed; add it to CONNECTORSMCP_TRUSTED_ORIGINS' },
        })
      }
      expect(authenticator.asked).toBe(before)
      expect(await host.user.channels.list()).toEqual([])
      expect(host.requests.at(-1)).toMatchObject({ outcome: 'origin_refused' })
    },
  )

  test.each([
    'http://localhost:5173',
    'https://127.0.0.1',
    'http://[::1]:3000',
    'http://0.0.0.0:9090',
    'http://10.1.2.3:9090',
    '',
  ])('S6, ORIGIN-1, ORIGIN-4 - origin %j passes', async (origin) => {
    expect(rpc(await host.post(PING, { Origin: origin, Authorization: 'Bearer t' })).result).toEqual({})
  })

  test('S6 - a rejected origin is answered while its body has not come', async () => {
    const connection = await RawConnection.open(host.port)
    connection.socket.write(
      'POST /mcp HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.com\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n',
    )
    expect((await connection.answer()).status).toBe(403)
  })
})

describe.each(UNREAD_KINDS)('authentication on %s', (kind) => {
  test.each([
    ['at once', false],
    ['after a while', true],
  ])(
    'S5, RPC-9 - a caller refused %s gets 200 with -32010 and the id, and nothing is executed',
    async (_name, later) => {
      const host = await startHost({ authenticator: tokens('good', 'me', later) }, kind)
      const answer = await host.call('queue_send', { channel: 'q', body: 'x' })
      expect(answer.status).toBe(200)
      expect(answer.text).toBe('{"jsonrpc":"2.0","id":1,"error":{"code":-32010,"message":"Authentication failed"}}')
      expect(answer.headers.get('content-type')).toBe('application/json')
      const big = await host.post(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, {
        Authorization: 'Bearer bad',
      })
      expect(big.text).toContain('"id":9007199254740993,')
      expect(await host.user.channels.list()).toEqual([])
      expect(host.requests.map(({ outcome }) => outcome)).toEqual(['unauthenticated', 'unauthenticated'])
      expect(host.failures).toEqual([])
    },
  )

  test('S5 - the id is null where it cannot be read, or beyond 64 KiB', async () => {
    const host = await startHost({ authenticator: tokens('good', 'me', false) }, kind)
    for (const body of ['{', '[]', '{"jsonrpc":"2.0","id":1.5,"method":"a"}', JSON.stringify(PING).padEnd(65_537)]) {
      const answer = await host.post(body)
      expect(answer.status).toBe(200)
      expect(rpc(answer)).toEqual({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32010, message: 'Authentication failed' },
      })
    }
    expect(rpc(await host.post(JSON.stringify(PING).padEnd(65_536)))).toMatchObject({ id: 1 })
  })

  test('A1 - GET without a valid token is 200 with -32010 as JSON', async () => {
    const host = await startHost({ authenticator: tokens('good', 'me', true) }, kind)
    const response = await fetch(host.url, { headers: { Accept: 'text/event-stream' } })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32010, message: 'Authentication failed' },
    })
    expect(host.connector.openStreams()).toBe(0)
  })

  test('authentication - the verified caller reaches the broker', async () => {
    const host = await startHost({ authenticator: tokens('good', 'crm-42', true) }, kind)
    const seen: string[] = []
    host.broker.observe({ accepted: (_type, _channel, caller) => void seen.push(caller.clientId) })
    const answer = await host.call('queue_send', { channel: 'q', body: 'x' }, { Authorization: 'Bearer good' })
    expect(rpc(answer).result).toMatchObject({ isError: false })
    expect(seen).toEqual(['crm-42'])
  })

  test('authentication - an authenticator that fails admits no caller and reveals no reason', async () => {
    const host = await startHost(
      {
        authenticator: {
          authenticate() {
            throw new Error('secret detail')
          },
        },
      },
      kind,
    )
    const answer = await host.post(PING)
    expect(rpc(answer)).toEqual({ jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'internal error' } })
    expect(host.failures).toHaveLength(1)
  })
})

describe('in somebody else’s server', () => {
  test('plugin - hooks of the host run, and their headers are in the answer', async () => {
    const host = await startHost()
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(cors, fastifyCorsOptions())
    let handled = 0
    app.addHook('preHandler', async (request, reply) => {
      handled++
      if (request.headers['x-block'] !== undefined) return reply.code(418).send('blocked')
      return undefined
    })
    app.post('/other', (request, reply) => reply.send(request.body))
    await app.register(mcpConnector(host.broker, { path: '/tools' }).plugin, { prefix: '/api' })
    const base = await app.listen({ port: 0, host: '127.0.0.1' })
    const send = (path: string, headers = {}): Promise<Response> =>
      fetch(`${base}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(PING),
      })
    const answer = await send('/api/tools')
    expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-expose-headers')).toBe('MCP-Session-Id, MCP-Protocol-Version')
    expect((await send('/api/tools', { 'X-Block': '1' })).status).toBe(418)
    expect(handled).toBe(2)
    expect(await (await send('/other')).json()).toEqual(PING)
    expect((await send('/mcp')).status).toBe(404)
    const preflight = await fetch(`${base}/api/tools`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-max-age')).toBe('86400')
  })

  test('plugin - with runHostHooks false the onRequest and preParsing hooks still run, and bodies of any content type reach the endpoint', async () => {
    const host = await startHost()
    const app = fastify()
    onTestFinished(() => app.close())
    const ran: string[] = []
    app.addHook('onRequest', async (request, reply) => {
      ran.push('onRequest')
      reply.header('X-Host', 'yes')
      return request.headers['x-block'] === undefined ? undefined : reply.code(418).send('blocked')
    })
    app.addHook('preHandler', async () => void ran.push('preHandler'))
    app.addHook('onResponse', async () => void ran.push('onResponse'))
    await app.register(mcpConnector(host.broker, { runHostHooks: false }).plugin)
    const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`
    const send = (headers: Record<string, string>): Promise<Response> =>
      fetch(url, { method: 'POST', headers, body: JSON.stringify(PING) })
    const answer = await send({ 'Content-Type': 'application/json' })
    expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(answer.headers.get('x-host')).toBe('yes')
    expect((await send({ 'Content-Type': 'garbage' })).status).toBe(400)
    expect((await send({ 'X-Block': '1' })).status).toBe(418)
    expect((await fetch(url)).status).toBe(406)
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(405)
    expect(ran.filter((hook) => hook === 'onRequest')).toHaveLength(5)
    expect(ran).not.toContain('preHandler')
    await expect.poll(() => ran.filter((hook) => hook === 'onResponse')).toHaveLength(5)
  })

  test('plugin - answers to injected requests as well, so that a host can test itself', async () => {
    const host = await startHost()
    const app = fastify()
    onTestFinished(() => app.close())
    await app.register(mcpConnector(host.broker).plugin)
    const inject = (body: object): Promise<string> =>
      app.inject({ method: 'POST', url: '/mcp', payload: body }).then(({ payload }) => payload)
    expect(await inject(PING)).toBe('{"jsonrpc":"2.0","id":1,"result":{}}')
    await host.user.queues.send('q', { body: new Uint8Array([104, 105]) })
    expect(resultText({ text: await inject(toolCall('queue_receive', { channel: 'q', max_messages: 1 })) })).toContain(
      'hi',
    )
  })

  test('hooks - a request is reported with its method, tool and outcome, names made up by callers are not', async () => {
    const host = await startHost()
    await host.post(PING)
    await host.post({ jsonrpc: '2.0', id: 1, method: 'made/up' })
    expect(resultText(await host.call('channel_list', {}))).toBe('[]')
    await host.call('made_up', {})
    await host.call('channel_info', { channel: 'none', type: 'queues' })
    await host.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect(host.requests.map(({ method, tool, outcome }) => [method, tool, outcome])).toEqual([
      ['ping', undefined, 'success'],
      ['unknown', undefined, 'error'],
      ['tools/call', 'channel_list', 'success'],
      ['tools/call', undefined, 'error'],
      ['tools/call', 'channel_info', 'tool_error'],
      ['notification', undefined, 'success'],
    ])
    expect(host.requests.every(({ seconds }) => seconds >= 0 && seconds < 30)).toBe(true)
  })

  test('options - numbers out of range are refused with their name', async () => {
    const { broker } = await startHost()
    for (const options of [
      { maxBodyBytes: 0 },
      { maxStreams: -1 },
      { toolTimeoutSeconds: 0 },
      { settleGraceMs: Number.NaN },
    ]) {
      expect(() => mcpConnector(broker, options)).toThrow(Object.keys(options)[0])
    }
  })
})

test.each(['fastify', 'node', 'express'] as const)(
  'requests ahead - on %s more than 16 that wait for answers close the connection, and others are served',
  async (kind) => {
    const host = await startHost({}, kind)
    const connection = await RawConnection.open(host.port)
    connection.socket.cork()
    for (let n = 0; n < 1_000; n++) connection.post('/mcp', PING)
    connection.socket.uncork()
    await connection.closed
    // Each read of Node may bring 17 answers before one is too many.
    expect(connection.received.split('HTTP/1.1 ').length).toBeLessThan(500)
    expect(rpc(await host.post(PING))).toMatchObject({ result: {} })
  },
)
