import { request } from 'node:http'
import { join } from 'node:path'
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'

import { replaceFile, testFolder } from '@signalbox/testkit/test-folder'
import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { fromFlags } from '../src/config/flags.ts'
import { createConfig, loadConfig } from '../src/config/load.ts'
import { startServer } from '../src/server.ts'
import { callTool } from './support/mcp.ts'
import { PROBED_ROUTES, REGISTER } from './support/routes.ts'
import { serve, serveAll, serveLogged } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}

/** A request with headers that `fetch` sets itself. */
function ask(url: string, headers: Record<string, string>, method = 'GET', body = ''): Promise<Head> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** A server with default settings. */
const byDefault = serveAll()

const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
const JSON_TYPE = { 'content-type': 'application/json' }

describe('front door - names of the server', () => {
  const EVIL = { host: 'evil.example:9090' }

  test('front door - while authentication is off, no route of either listener takes a foreign Host', async () => {
    const { http, api } = byDefault()
    const refused = [
      await ask(`${http.url}/mcp`, { ...EVIL, ...JSON_TYPE }, 'POST', ping),
      await ask(`${http.url}/mcp`, { ...EVIL, accept: 'text/event-stream' }),
      await ask(`${http.url}/agents`, EVIL),
      await ask(`${http.url}/a2a/agent`, { ...EVIL, ...JSON_TYPE }, 'POST', ping),
      await ask(`${http.url}/ce/subscribe/commands?channel=c`, EVIL),
      await ask(`${api.url}/api/config`, EVIL),
      await ask(`${api.url}/metrics`, EVIL),
    ]
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 403))
    for (const { text } of refused) expect(text).toContain('HTTP_ALLOWED_HOSTS')
    expect((await ask(`${http.url}/ping`, EVIL)).status).toBe(200)
  })

  test('front door - a navigation from another site neither calls an agent nor takes messages', async () => {
    const { http } = byDefault()
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect((await ask(`${http.url}/ce/subscribe/commands?channel=c`, foreign)).status).toBe(403)
    expect((await ask(`${http.url}/mcp`, { ...foreign, accept: 'text/event-stream' })).status).toBe(403)
    expect((await ask(`${http.url}/agents`, { 'sec-fetch-site': 'none' })).status).toBe(200)
  })

  test('front door - PUBLIC_URL, and a list in addition to auto, name the server too', async () => {
    const { http } = await serve({
      publicUrl: 'https://broker.example/x',
      http: { allowedHosts: ['auto', 'broker.internal'] },
    })
    const at = async (host: string) => (await ask(`${http.url}/agents`, { host })).status
    expect(await Promise.all(['broker.example', 'broker.internal:80', '127.0.0.1', 'other'].map(at))).toEqual([
      200, 200, 200, 403,
    ])
  })
})

describe('front door - limits', () => {
  test('front door - a refusal by a limit is counted, and logged once for its caller', async () => {
    const { server, lines } = await serveLogged({ limits: { process: { requestsInFlight: 1 } } })
    const { http, api } = server
    const asked = Promise.withResolvers<void>()
    const answering = Promise.withResolvers<void>()
    await server.broker.as({ clientId: 'worker' }).commands.subscribe('work', {}, async () => {
      asked.resolve()
      await answering.promise
      return {}
    })
    const waiting = callTool(http.url, 'command_send', { channel: 'work', body: 'x', timeout_seconds: 60 })
    await asked.promise
    const refusal = await ask(`${http.url}/mcp`, JSON_TYPE, 'POST', ping)
    expect(refusal.status).toBe(429)
    expect(refusal.headers['retry-after']).toBe('1')
    expect(JSON.parse(refusal.text)).toMatchObject({ error: { code: -32603 } })
    expect((await ask(`${http.url}/agents`, {})).status).toBe(429)
    expect((await ask(`${http.url}/ce/send/event`, JSON_TYPE, 'POST', '{}')).status).toBe(429)
    const busy = await ask(`${http.url}/a2a/x`, JSON_TYPE, 'POST', ping)
    expect([busy.status, JSON.parse(busy.text)]).toMatchObject([
      200,
      { error: { code: -32603, message: expect.stringMatching(/^server busy: /) } },
    ])
    answering.resolve()
    await waiting
    await vi.waitFor(async () => {
      const page = await (await fetch(`${api.url}/metrics`)).text()
      expect(Number(/broker_limit_refusals_total\{limit="\w+"\} (\d+)/.exec(page)?.[1])).toBeGreaterThanOrEqual(4)
      expect(page).toContain('broker_limit_max{limit="process_requests"} 1')
    }, 10_000)
    const reported = lines.filter(({ msg }) => msg === 'requests refused: limit reached')
    expect(reported).toMatchObject([{ caller: 'address:127.0.0.1', count: 1 }])
  })

  test('front door - short of memory, the server is not ready and takes small bodies only', async () => {
    const { http, api } = await serve({ limits: { process: { memoryPercent: 1 } } })
    const ready = await fetch(`${api.url}/ready`)
    expect([ready.status, await ready.json()]).toMatchObject([
      503,
      { checks: expect.arrayContaining([expect.objectContaining({ name: 'memory', ok: false })]) },
    ])
    expect(await callTool(http.url, 'queue_send', { channel: 'q', body: 'x' })).toMatchObject({ isError: false })
    const large = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(70_000) } })
    const refused = await ask(
      `${http.url}/mcp`,
      { ...JSON_TYPE, 'content-length': String(large.length) },
      'POST',
      large,
    )
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('short of memory')])
    expect((await ask(`${http.url}/mcp`, { accept: 'text/event-stream' })).status).toBe(429)
  })
})

/** The address in the log line of a request for /agents. */
function address(lines: readonly Record<string, unknown>[]): unknown {
  return lines.find(({ path }) => path === '/agents')?.['address']
}

test('front door - only a trusted proxy names the client in the log', async () => {
  const { server, lines } = await serveLogged({ trustedProxies: ['127.0.0.0/8'] })
  await ask(`${server.http.url}/agents`, { 'x-forwarded-for': '203.0.113.7' })
  const other = await serveLogged({})
  await ask(`${other.server.http.url}/agents`, { forwarded: 'for=203.0.113.7' })
  await vi.waitFor(() => expect([address(lines), address(other.lines)]).toEqual(['203.0.113.7', '127.0.0.1']), 10_000)
})

test('front door - TRUSTED_PROXIES takes addresses and ranges, and reports any other value', () => {
  expect(() => createConfig({ trustedProxies: ['10.0.0.0/33'] })).toThrow(/trustedProxies: "10.0.0.0\/33" is not/)
})

test('front door - a preflight gets the headers of the protocols that it asks for', async () => {
  const { http } = byDefault()
  const preflight = async (asked: string) => {
    const headers = {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': asked,
    }
    return (await ask(`${http.url}/mcp`, headers, 'OPTIONS')).headers['access-control-allow-headers']
  }
  const usual = 'Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept'
  expect(await preflight('content-type')).toBe(usual)
  expect(await preflight('mcp-method, a2a-version, x-other')).toBe(
    `${usual}, Mcp-Method, Mcp-Name, A2A-Version, A2A-Extensions, X-A2A-Extensions, Idempotency-Key`,
  )
  expect(await preflight('idempotency-key')).toContain(', Idempotency-Key')
})

test('front door - web pages can read Idempotency-Replayed of answers at /ce', async () => {
  const { http } = byDefault()
  const exposed = async (path: string) =>
    (await ask(`${http.url}${path}`, { origin: 'http://localhost:5173' }, 'POST')).headers[
      'access-control-expose-headers'
    ]
  expect(await exposed('/ce/send/command')).toBe('MCP-Session-Id, MCP-Protocol-Version, Idempotency-Replayed')
  expect(await exposed('/mcp')).toBe('MCP-Session-Id, MCP-Protocol-Version')
})

test('front door - every answer forbids browsers to guess another content type', async () => {
  const { http, api } = byDefault()
  const answers = [
    await ask(`${http.url}/mcp`, JSON_TYPE, 'POST', ping),
    await ask(`${http.url}/mcp`, JSON_TYPE, 'POST', '{'),
    await ask(`${http.url}/nothing`, {}),
    await ask(`${http.url}/ping`, {}),
    await ask(`${http.url}/agents`, {}),
    await ask(`${http.url}/.well-known/agent-card.json`, {}),
    await ask(`${api.url}/api/config`, {}),
  ]
  expect(answers.map(({ headers }) => headers['x-content-type-options'])).toEqual(answers.map(() => 'nosniff'))
})

test('front door - changed limits of the configuration file apply at once; an invalid file changes nothing', async () => {
  const path = join(testFolder(), 'signalbox.yaml')
  const write = (limit: string) => replaceFile(path, `limits: { caller: { requestsPerSecond: ${limit} } }\n`)
  write('0')
  const load = async () => (await loadConfig({ flags: fromFlags(['--config', path]), env: {} })).config
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const config = createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: testFolder() } })
  const server = await startServer(config, { log, configFile: { path, load } })
  onTestFinished(() => server.close())
  const status = async () => (await fetch(`${server.http.url}/agents`)).status
  write('much')
  await vi.waitFor(
    () => expect(lines.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^limits not reloaded/)),
    20_000,
  )
  expect([await status(), await status(), await status()]).toEqual([200, 200, 200])
  write('1')
  await vi.waitFor(() => expect(lines.map(({ msg }) => msg)).toContain('limits reloaded'), 20_000)
  expect(await Promise.all([status(), status(), status(), status()])).toContain(429)
})

test('front door - each caller has its own limit on channels, waiting commands and agents', async () => {
  const keys = issuer()
  const caller = { channels: 3, waitingRequests: 1, agents: 1 }
  const { http, api } = await serve({ ...trusting(keys), limits: { caller } })
  const [one, other] = await Promise.all(
    ['one', 'other'].map(async (name) => ({ authorization: await keys.bearer(name) })),
  )
  const send = (channel: string, who = one) => callTool(http.url, 'queue_send', { channel, body: 'x' }, who)
  expect(await send('a')).toMatchObject({ isError: false })
  expect(await send('b')).toMatchObject({ isError: false })
  // The channel of commands is the third.
  const ask = (who = one) => callTool(http.url, 'command_send', { channel: 'a', body: 'x', timeout_seconds: 1 }, who)
  const [first, second, third] = await Promise.all([ask(), ask(), ask(other)])
  const texts = [first, second].map((answer) => JSON.stringify(answer))
  expect(texts.filter((text) => text.includes('CALLER_LIMIT'))).toHaveLength(1)
  expect(JSON.stringify(third)).not.toContain('CALLER_LIMIT')
  expect(await send('c')).toMatchObject({ isError: true })
  expect(await send('a')).toMatchObject({ isError: false })
  expect(await send('c', other)).toMatchObject({ isError: false })

  const register = async (agentId: string, who = one) => {
    const body = JSON.stringify({ agent_id: agentId, name: 'A', url: 'http://192.0.2.1/' })
    const headers = { ...JSON_TYPE, ...who }
    return (await fetch(`${http.url}/agents/register`, { method: 'POST', headers, body })).status
  }
  expect([
    await register('agent-x'),
    await register('agent-y'),
    await register('agent-x'),
    await register('agent-z', other),
  ]).toEqual([200, 429, 200, 200])
  const admin = { authorization: await keys.bearer('admin', { roles: ['Admin'] }) }
  const page = await (await fetch(`${api.url}/metrics`, { headers: admin })).text()
  for (const limit of ['caller_channels', 'caller_waiting_requests', 'caller_agents']) {
    expect(page).toContain(`broker_limit_refusals_total{limit="${limit}"} 1`)
  }
})

/** JSON of 32 MB. */
const BOMB = Buffer.from(`{"a":"${'x'.repeat(32_000_000)}"}`)

const FAST = { level: 1, params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

const ENCODED = [
  ['gzip', gzipSync(BOMB, FAST)],
  ['x-gzip', gzipSync('{}')],
  ['deflate', deflateSync(BOMB, FAST)],
  ['br', brotliCompressSync(BOMB, FAST)],
  ['gzip, br', brotliCompressSync(gzipSync('{}'))],
] as const

const ROUTES = [...PROBED_ROUTES, REGISTER].filter(({ method, body }) => method === 'POST' && body !== undefined)

/** These take their arguments from the query, and discard a body unread. */
const WITHOUT_BODY = new Set(['receive', 'ack', 'nack', 'extend', 'ack_all'].map((name) => `POST /ce/queue/${name}`))

test('J3 - no route of either listener decodes a body: an encoded one is 415', async () => {
  const { http, api } = byDefault()
  expect(ROUTES.length).toBeGreaterThan(20)
  for (const { listener, name, path, headers } of ROUTES) {
    const { url } = listener === 'shared' ? http : api
    for (const [encoding, body] of ENCODED) {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-encoding': encoding },
        body,
      })
      await response.arrayBuffer()
      const { status } = response
      expect([name, encoding, status === 415]).toEqual([name, encoding, !WITHOUT_BODY.has(name)])
    }
  }
})

/** Sends the head of a request and the beginning of its body. Resolves with the answer when the connection is closed. */
async function dribble(url: string, head: string, length = 'Content-Length: 1000'): Promise<string> {
  const connection = new RawConnection(url)
  const { host } = new URL(url)
  await connection.write(`${head} HTTP/1.1\r\nHost: ${host}\r\n${length}\r\nContent-Type: application/json\r\n`)
  await connection.write(length.startsWith('Transfer') ? '\r\n1\r\n{\r\n' : '\r\n{')
  await connection.closed
  return connection.received.slice(0, connection.received.indexOf('\r\n'))
}

test('front door - a refused request whose body does not arrive keeps no connection, on any path', async () => {
  const { http, api } = await serve({ ...trusting(issuer('key')), api: { authentication: { enable: true } } })
  const evil = '\r\nOrigin: https://evil.example'
  const cases: readonly (readonly [string, string, number])[] = [
    [http.url, 'POST /nothing', 404],
    [http.url, 'POST /ping', 404],
    [http.url, 'POST /mcp', 200],
    [http.url, 'PUT /mcp', 405],
    [http.url, 'POST /a2a/agent', 200],
    [http.url, 'GET /a2a/agent', 405],
    [http.url, 'POST /agents/register', 401],
    [http.url, 'POST /ce/queue/send', 401],
    [api.url, 'POST /nothing', 404],
    [api.url, 'POST /api/actions/create_channel', 401],
    [api.url, 'GET /api/config', 401],
  ]
  const lengths = ['Content-Length: 1000', 'Content-Length: 900000', 'Transfer-Encoding: chunked']
  const answers = cases.flatMap(([url, head, status]) =>
    lengths.map(async (length) => [head, length, status, await dribble(url, head, length)] as const),
  )
  const refused = ['POST /mcp', 'POST /a2a/agent', 'POST /agents/register', 'POST /ce/queue/send'].map(
    async (head) => [head, evil, 403, await dribble(http.url, head, `Content-Length: 1000${evil}`)] as const,
  )
  for (const [head, length, status, line] of await Promise.all([...answers, ...refused])) {
    expect([head, length, line]).toEqual([head, length, expect.stringContaining(`HTTP/1.1 ${status} `)])
  }
})

function head(path: string, id: number): string {
  return `GET ${path}?n=${id} HTTP/1.1\r\nHost: localhost\r\n\r\n`
}

const JSON_CHUNKED = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n'

describe('front door - floods of one connection', () => {
  test('front door - a connection may send 16 requests ahead, and gets the answers in order', async () => {
    for (const { port } of [byDefault().http, byDefault().api]) {
      const connection = await RawConnection.open(port)
      const sent = Array.from({ length: 17 }, (_, id) => head(id % 2 === 0 ? '/ping' : '/nothing', id))
      await connection.write(sent.join(''))
      const statuses: number[] = []
      while (statuses.length < 17) statuses.push((await connection.answer()).status)
      expect(statuses).toEqual(sent.map((_, id) => (id % 2 === 0 ? 200 : 404)))
      await connection.write(head('/ping', 17))
      expect((await connection.answer()).status).toBe(200)
    }
  })

  test('front door - more close the connection, and others are served', async () => {
    for (const { port, url } of [byDefault().http, byDefault().api]) {
      for (const request of [head('/ping', 0), head('/nothing', 0)]) {
        const connection = await RawConnection.open(port)
        await connection.write(request.repeat(5_000))
        await connection.closed
        // Each read of Node may bring 17 answers before one is too many.
        expect(connection.received.split('HTTP/1.1 ').length).toBeLessThan(500)
      }
      expect((await fetch(`${url}/ping`)).status).toBe(200)
    }
  })

  test('front door - a body in too many small chunks is refused on any path, and others are served', async () => {
    for (const { port, url } of [byDefault().http, byDefault().api]) {
      const paths = ['/mcp', '/ping', '/nothing', '/ce/queue/send', '/api/actions/create_channel']
      const sent = paths.map(async (path) => {
        const connection = await RawConnection.open(port)
        await connection.write(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${JSON_CHUNKED}\r\n${'1\r\n \r\n'.repeat(10_000)}`,
        )
        await connection.closed
        expect(connection.received).toMatch(/^HTTP\/1\.1 4\d\d /)
      })
      await Promise.all(sent)
      expect((await fetch(`${url}/ping`)).status).toBe(200)
    }
    for (const [{ port }, path] of [
      [byDefault().http, '/mcp'],
      [byDefault().api, '/api/actions/create_channel'],
    ] as const) {
      const connection = await RawConnection.open(port)
      await connection.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${JSON_CHUNKED}\r\n${'1\r\n \r\n'.repeat(300)}`,
      )
      await connection.closed
      expect(connection.received).toContain('too many small chunks: at most 256, and one for each 128 bytes')
    }
  })
})
