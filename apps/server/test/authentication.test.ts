import { Refusals } from '@signalbox/http-kit/internal'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, test } from 'vitest'

import { createConfig } from '../src/config/load.ts'
import { startServer } from '../src/server.ts'
import { postJson, startAgent } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve, serveLogged } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const REFUSED = { jsonrpc: '2.0', id: 1, error: { code: -32010, message: 'Authentication failed' } }
const one = issuer()

function ping(base: string, authorization?: string): Promise<unknown> {
  return rpc(base, 'ping', {}, authorization === undefined ? {} : { authorization })
}

/** The status and body of a CloudEvents call. */
async function drain(base: string, authorization?: string) {
  const response = await fetch(`${base}/ce/queue/ack_all?channel=q`, {
    method: 'POST',
    headers: authorization === undefined ? {} : { authorization },
  })
  return { status: response.status, challenge: response.headers.get('www-authenticate') }
}

test('S1, S2 - with authentication on, only verified callers are admitted, and each connector has its own refusal', async () => {
  const { http, broker } = await serve(trusting(one))
  const callers: string[] = []
  // The audit log's own entries are the broker's.
  broker.observe({
    accepted: (type, _channel, { clientId }) => {
      if (type === 'queues') callers.push(clientId)
    },
  })
  const good = await one.bearer('alice')
  const bad = [undefined, await issuer().bearer('alice'), await one.bearer(''), 'Basic x', `${good}x`]
  for (const authorization of bad) {
    expect(await ping(http.url, authorization)).toEqual(REFUSED)
    expect(await drain(http.url, authorization)).toEqual({ status: 401, challenge: 'Bearer realm="signalbox"' })
  }
  expect(await ping(http.url, good)).toMatchObject({ result: {} })
  expect(await drain(http.url, good)).toMatchObject({ status: 200 })
  const sent = { name: 'queue_send', arguments: { channel: 'q', body: 'x' } }
  expect(await rpc(http.url, 'tools/call', sent, { authorization: good })).toMatchObject({ result: { isError: false } })
  expect(callers).toEqual(['alice'])
  for (const path of ['/ping', '/health', '/ready']) expect((await fetch(`${http.url}${path}`)).status).toBe(200)
  expect((await fetch(`${http.url}/nothing`)).status).toBe(404)
})

/** The text of a ping with these header lines. */
function pingText(headers: string): string {
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  return `POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
}

test('S1 - two Authorization headers are refused, and a token of 1 MiB does not even arrive', async () => {
  const { http } = await serve(trusting(one))
  const good = await one.bearer('alice')
  const twice = new RawConnection(http.url)
  await twice.write(pingText(`Authorization: ${good}\r\nauthorization: ${good}\r\n`))
  await twice.closed
  expect(twice.received).toContain('"code":-32010')
  const once = new RawConnection(http.url)
  await once.write(pingText(`Authorization: ${good}\r\n`))
  await once.closed
  expect(once.received).toContain('"result":{}')
  const huge = new RawConnection(http.url)
  await huge.write(pingText(`Authorization: Bearer ${'x'.repeat(1_048_576)}\r\n`))
  await huge.closed
  expect(huge.received).toMatch(/^(?:HTTP\/1\.1 431 |$)/)
})

test('S1 - issuer, audience and algorithms come from the settings', async () => {
  const settings = { issuer: 'https://id.example', audience: ['broker'], algorithms: ['ES256'] }
  const { http } = await serve({ authentication: { enable: true, keyFile: testFile(one.pem), ...settings } })
  const good = { iss: 'https://id.example', aud: 'broker' }
  expect(await ping(http.url, await one.bearer('a', good))).toMatchObject({ result: {} })
  for (const bad of [{ iss: 'https://evil.example' }, { aud: 'x' }]) {
    expect(await ping(http.url, await one.bearer('a', { ...good, ...bad }))).toEqual(REFUSED)
  }
})

test('S9 - streams of /mcp, /ce and /a2a end when the token that opened them expires, and the agent is notified', async () => {
  const { http } = await serve(trusting(one))
  const agent = await startAgent((_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n')
  })
  const lasting = await one.bearer('alice')
  const card = { agent_id: 'agent-1', name: 'Agent', url: agent.url }
  expect((await postJson(`${http.url}/agents/register`, card, { authorization: lasting })).status).toBe(200)
  // Tokens count whole seconds: this one ends within three, and not before two.
  const exp = Math.floor(Date.now() / 1000) + 3
  const paths = [
    '/mcp',
    '/ce/subscribe/events?channel=a',
    '/ce/subscribe/events-store?channel=a',
    '/ce/subscribe/commands?channel=a',
    '/a2a/agent-1/stream?message=hi',
  ]
  const open = (path: string, authorization: string): Promise<Response> =>
    fetch(`${http.url}${path}`, { headers: { authorization, accept: 'text/event-stream' } })
  const stays = await open('/a2a/agent-1/stream?message=hi', lasting)
  const brief = await one.bearer('alice', { exp })
  await Promise.all(
    paths.map(async (path) => {
      const stream = await open(path, brief)
      expect(stream.headers.get('content-type'), path).toBe('text/event-stream')
      await stream.text()
      expect(Date.now(), path).toBeGreaterThanOrEqual(exp * 1000)
    }),
  )
  const counts = () => [
    agent.asked.filter(({ method }) => method === 'stream_cancel').length,
    agent.gone.filter(({ method }) => method === 'message/stream').length,
  ]
  await expect.poll(counts, { timeout: 20_000 }).toEqual([1, 1])
  await stays.body?.cancel()
})

test('S1 - the server starts without its key provider, and admits no caller', async () => {
  const { http } = await serve({ authentication: { enable: true, jwksUrl: 'http://127.0.0.1:9/jwks' } })
  expect(await ping(http.url, await one.bearer('alice'))).toEqual(REFUSED)
  expect((await fetch(`${http.url}/ready`)).status).toBe(200)
})

test.each([
  [{ enable: true }, /^authentication: it is on and has no keys; allowed: exactly one of authentication.jwksUrl,/],
  [{ enable: true, secret: 'x'.repeat(32), keyFile: '/k' }, /^authentication: keyFile and secret are both set/],
  [{ enable: true, secret: 'hunter2' }, /^authentication\.secret: it has 7 bytes; allowed are 32 or more$/],
  [{ enable: true, keyFile: '/nowhere' }, /^authentication\.keyFile: cannot read "\/nowhere" \(ENOENT\)/],
  [{ enable: true, jwksUrl: 'file:///etc/passwd' }, /^authentication\.jwksUrl: .*allowed is an http or https URL/],
  [
    { enable: true, secret: 'x'.repeat(32), algorithms: ['RS256'] },
    /^authentication\.algorithms: "RS256" cannot be used with a secret/,
  ],
])('S1 - the settings %j stop the start', async (authentication, problem) => {
  const start = async () => startServer(createConfig({ authentication, store: { path: testFolder() } }))
  await expect(start()).rejects.toMatchObject({ code: 'CONFIG_INVALID', problems: [expect.stringMatching(problem)] })
})

test('S1 - refused callers are in the log, by address, and no token is', async () => {
  const { server, lines } = await serveLogged({ authentication: { enable: true, keyFile: testFile(one.pem) } })
  const secret = await issuer().bearer('mallory')
  for (let i = 0; i < 5; i++) await ping(server.http.url, secret)
  await ping(server.http.url, await one.bearer('alice'))
  await server.close()
  const refused = lines.filter(({ msg }) => msg === 'authentication failed')
  expect(refused).toMatchObject([
    { address: '127.0.0.1', count: 1, reason: expect.stringContaining('signature') },
    { address: '127.0.0.1', count: 4 },
  ])
  expect(JSON.stringify(lines)).not.toContain(secret.slice(20, 60))
})

test('S1 - a flood of refusals from many addresses is bounded', () => {
  const reported: { address: string; count: number }[] = []
  const refusals = new Refusals((refusal) => void reported.push(refusal))
  for (let i = 0; i < 5_000; i++) refusals.add(`10.0.${i >> 8}.${i & 255}`, 'no')
  refusals[Symbol.dispose]()
  expect(reported).toHaveLength(1_002)
  expect(reported.at(-1)).toMatchObject({ address: 'others', count: 3_999 })
})

test('log - each request is one line with its caller, unless LOG_REQUESTS is off', async () => {
  for (const requests of [true, false]) {
    const authentication = { enable: true, keyFile: testFile(one.pem) }
    const { server, lines } = await serveLogged({ authentication, log: { requests } })
    await ping(server.http.url, await one.bearer('alice'))
    await drain(server.http.url)
    await fetch(`${server.http.url}/ping?secret=1`)
    const headers = { authorization: await one.bearer('bob') }
    const stream = await fetch(`${server.http.url}/ce/subscribe/events?channel=a`, { headers })
    await stream.body?.cancel()
    await server.close()
    const found = lines.filter(({ msg }) => msg === 'request')
    expect(found).toMatchObject(
      requests
        ? [
            { method: 'POST', path: '/mcp', status: 200, client: 'alice', address: '127.0.0.1' },
            { method: 'POST', path: '/ce/queue/ack_all', status: 401 },
            { method: 'GET', path: '/ping', status: 200 },
            { method: 'GET', path: '/ce/subscribe/events', status: 200, client: 'bob', address: '127.0.0.1' },
          ]
        : [],
    )
  }
})
