import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { anonymousAuthenticator } from '@signalbox/http-kit'
import pino from 'pino'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import { Health } from '../src/health/health.ts'
import { listen } from '../src/listeners/address.ts'
import { createSharedRoutes } from '../src/listeners/shared-listener.ts'
import type { Timeouts } from '../src/listeners/shared-server.ts'
import { SharedServer } from '../src/listeners/shared-server.ts'
import { Metrics } from '../src/metrics/metrics.ts'
import { callText, callTool, rpc } from './support/mcp.ts'
import { serve, serveAll } from './support/server.ts'

/** A server with default settings. */
const shared = serveAll()

const CORS_HEADERS = [
  'access-control-allow-origin',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-allow-credentials',
  'access-control-max-age',
  'vary',
]

function corsOf(response: Response): Record<string, string | null> {
  return Object.fromEntries(CORS_HEADERS.map((name) => [name, response.headers.get(name)]))
}

function preflight(url: string, origin: string): Promise<Response> {
  return fetch(url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
  })
}

test('CORS-7 - a preflight is answered before the connector, with the defaults of the specification', async () => {
  const { http } = shared()
  // Not a trusted origin of /mcp: that is the connector's to say, when the call itself comes.
  const response = await preflight(`${http.url}/mcp`, 'https://app.example.com')
  expect(response.status).toBe(204)
  expect(corsOf(response)).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
    'access-control-allow-headers':
      'Authorization, Content-Type, MCP-Protocol-Version, MCP-Session-Id, Last-Event-ID, Accept',
    'access-control-expose-headers': 'MCP-Session-Id, MCP-Protocol-Version',
    'access-control-allow-credentials': null,
    'access-control-max-age': '86400',
    vary: null,
  })
})

test('CORS - an answer to a browser can be read by it, and shows the exposed headers', async () => {
  const { http } = shared()
  const response = await fetch(`${http.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'http://localhost:5173' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  })
  expect(response.status).toBe(200)
  expect(corsOf(response)).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'MCP-Session-Id, MCP-Protocol-Version',
  })
})

test('CORS - requests without an Origin get no CORS headers', async () => {
  const { http } = shared()
  const response = await fetch(`${http.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  })
  expect(Object.values(corsOf(response)).filter((value) => value !== null)).toEqual([])
})

test('CORS - a list of origins is compared exactly', async () => {
  const { http } = await serve({
    cors: { allowOrigins: ['https://a.example', 'https://b.example'], allowCredentials: true, maxAge: 5 },
  })
  expect(corsOf(await preflight(`${http.url}/mcp`, 'https://b.example'))).toMatchObject({
    'access-control-allow-origin': 'https://b.example',
    'access-control-allow-credentials': 'true',
    'access-control-max-age': '5',
    vary: 'Origin',
  })
  const other = await preflight(`${http.url}/mcp`, 'https://a.example.org')
  expect(other.headers.get('access-control-allow-origin')).toBeNull()
})

function pingFrom(origin: string, url: string): Promise<unknown> {
  return rpc(url, 'ping', {}, { origin })
}

test('S6, SVC-4 - a browser origin that is not trusted is refused on /mcp, by setting', async () => {
  const refused = { error: { code: -32600, message: 'origin not allowed; add it to CONNECTORSMCP_TRUSTED_ORIGINS' } }
  const byDefault = shared()
  expect(await pingFrom('https://evil.example', byDefault.http.url)).toMatchObject(refused)
  expect(await pingFrom('http://127.0.0.1:1234', byDefault.http.url)).toMatchObject({ result: {} })
  const listed = await serve({ connectors: { mcp: { trustedOrigins: ['https://app.example:8443'] } } })
  expect(await pingFrom('https://app.example:8443', listed.http.url)).toMatchObject({ result: {} })
  expect(await pingFrom('http://localhost:1234', listed.http.url)).toMatchObject(refused)
  const open = await serve({ connectors: { mcp: { trustedOrigins: ['*'] } } })
  expect(await pingFrom('https://evil.example', open.http.url)).toMatchObject({ result: {} })
})

test('S6 - pages of other origins may not read the metrics; probes are public', async () => {
  const { api } = shared()
  const from = (origin: string, path: string) => fetch(`${api.url}${path}`, { headers: { origin } })
  expect((await from('https://evil.example', '/metrics')).status).toBe(403)
  expect((await from('https://evil.example', '/ready')).status).toBe(200)
  expect((await from('http://localhost:3000', '/metrics')).status).toBe(403)
  expect((await from(api.url, '/metrics')).status).toBe(200)
  const listed = await serve({ api: { trustedOrigins: ['https://ops.example'] } })
  const { url } = listed.api
  expect((await fetch(`${url}/metrics`, { headers: { origin: 'https://ops.example' } })).status).toBe(200)
  expect((await fetch(`${url}/metrics`, { headers: { origin: 'http://localhost' } })).status).toBe(403)
})

test('J3 - a body over MAX_BODY_BYTES is 413 with -32600, one of exactly that size is taken', async () => {
  const { http } = await serve({ maxBodyBytes: 4096 })
  const post = (bytes: number) => {
    const start = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
    const body = `${start}${'x'.repeat(bytes - start.length - 3)}"}}`
    return fetch(`${http.url}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  }
  expect((await post(4096)).status).toBe(200)
  const refused = await post(4097)
  expect(refused.status).toBe(413)
  expect(await refused.json()).toMatchObject({ error: { code: -32600, message: expect.stringContaining('4096') } })
})

test('configuration - CONNECTORSMCP_ENABLE=false takes /mcp away', async () => {
  const { http } = await serve({ connectors: { mcp: { enable: false } } })
  expect((await fetch(`${http.url}/mcp`, { method: 'POST' })).status).toBe(404)
  expect((await fetch(`${http.url}/ready`)).status).toBe(200)
})

test('configuration - limits of queues and channels reach the engine', async () => {
  const { http } = await serve({ queue: { maxMessages: 1 }, maxChannels: 2 })
  const send = (channel: string) => callTool(http.url, 'queue_send', { channel, body: 'x' })
  expect((await send('a')).isError).toBe(false)
  expect(await send('a')).toMatchObject({ isError: true, text: expect.stringMatching(/full/i) })
  expect((await send('b')).isError).toBe(false)
  expect(await send('c')).toMatchObject({ isError: true, text: expect.stringContaining('2') })
})

test('configuration - retention of events stores reaches the engine', async () => {
  const { http } = await serve({ store: { maxBytes: 2_000 } })
  for (let i = 1; i <= 10; i++) {
    await callTool(http.url, 'events_store_publish', { channel: 's', body: 'x'.repeat(1_000) })
  }
  const first = async () => {
    const { text } = await callTool(http.url, 'events_store_read', { channel: 's', max_messages: 1 })
    return (JSON.parse(text) as { sequence: number }[])[0]?.sequence
  }
  await expect.poll(first, { timeout: 20_000 }).toBeGreaterThan(5)
})

test('M3 - CONNECTORSMCP_MAX_STREAMS bounds the open streams', async () => {
  const { http } = await serve({ connectors: { mcp: { maxStreams: 1 } } })
  const open = () => fetch(`${http.url}/mcp`, { headers: { accept: 'text/event-stream' } })
  const first = await open()
  expect(first.status).toBe(200)
  expect((await open()).status).toBe(503)
  await first.body!.cancel()
})

/** The shared listener alone, with these times. */
async function listener(timeouts: Timeouts): Promise<string> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  const metrics = new Metrics()
  const health = new Health('embedded', '0')
  const log = pino({ level: 'silent' })
  const sharedServer = new SharedServer({ health, log, timeouts })
  const config = createConfig()
  const parts = { ...createBroker(engine), authenticator: anonymousAuthenticator, health, metrics, log }
  sharedServer.prepare(await createSharedRoutes({ config, ...parts }))
  sharedServer.open()
  onTestFinished(async () => {
    metrics[Symbol.dispose]()
    await sharedServer.drain(1_000).closed
    await engine.close()
  })
  return (await listen(sharedServer.server, 'http', { host: '127.0.0.1', port: 0 })).url
}

test('timeouts - idle connections are closed, before and after their first request', async () => {
  const base = await listener({ headersMs: 1_000, requestMs: 2_000, keepAliveMs: 300 })
  const silent = new RawConnection(base)
  const used = new RawConnection(base)
  await used.write('GET /ping HTTP/1.1\r\nHost: x\r\n\r\n')
  await Promise.all([silent.closed, used.closed])
  expect(used.received).toMatch(/^HTTP\/1\.1 200 /)
})

test('timeouts - a client that sends too slowly is disconnected; one that waits for an answer stays connected', async () => {
  const base = await listener({ headersMs: 500, requestMs: 600, keepAliveMs: 5_000 })
  const silent = new RawConnection(base)
  const halfHead = new RawConnection(base)
  await halfHead.write('POST /mcp HTTP/1.1\r\nHost: x\r\n')
  const halfBody = new RawConnection(base)
  await halfBody.write(callText('channel_list', {}).slice(0, -5))
  const waiting = new RawConnection(base)
  await waiting.write(callText('queue_receive', { channel: 'q', max_messages: 1, wait_timeout_seconds: 2 }))

  await Promise.all([silent.closed, halfHead.closed, halfBody.closed])
  expect(halfHead.received).toContain('408')
  while (!waiting.received.includes('\r\n\r\n')) await new Promise((resolve) => waiting.socket.once('data', resolve))
  expect(waiting.received).toMatch(/^HTTP\/1\.1 200 /)
})
