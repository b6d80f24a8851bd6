import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import { callAgent, postJson, register, startAgent, withResult } from './support/agent.ts'
import { runCli } from './support/cli.ts'
import { startForwardProxy } from './support/forward-proxy.ts'
import { callTool } from './support/mcp.ts'
import { serve, serveLogged } from './support/server.ts'
import { certificate, startTlsAgent } from './support/tls.ts'

const CREDENTIALS = 'us%40er:pass%3Aword'
const BASIC = `Basic ${Buffer.from('us@er:pass:word').toString('base64')}`

function agent(id: string, url: string): object {
  return { agent_id: id, name: id, url }
}

test('R8 - plain HTTP goes to the proxy in absolute form, with its credentials, under a name that only it knows', async () => {
  const proxy = await startForwardProxy()
  const { http } = await serve({
    connectors: { a2a: { agentProxyUrl: `http://${CREDENTIALS}@127.0.0.1:${proxy.port}` } },
  })
  const bare = await startAgent(({ method }, response) => {
    if (method !== 'message/stream') return withResult('through the proxy')({} as never, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: task.done\ndata: {"type":"done","payload":{"state":"completed"}}\n\n')
  })
  const { port } = new URL(bare.url)
  const url = `http://agent.invalid:${port}/rpc?q=1`
  await register(http.url, agent('inside', url))
  const mine = { 'proxy-authorization': 'Basic mine', 'x-mine': '1' }
  const call = { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }
  expect(await (await postJson(`${http.url}/a2a/inside`, call, mine)).json()).toMatchObject({
    result: 'through the proxy',
  })
  const stream = await postJson(`${http.url}/a2a/inside`, { ...call, method: 'message/stream' })
  expect(await stream.text()).toContain('event: task.done')
  expect((await callTool(http.url, 'agent_send', { agent_id: 'inside', message: 'x' })).isError).toBe(false)
  expect(proxy.asked).toEqual(
    Array.from({ length: 3 }, () => ({ line: `POST ${url}`, host: `agent.invalid:${port}`, authorization: BASIC })),
  )
  expect(bare.asked).toHaveLength(3)
  expect(bare.asked[0]?.headers).toMatchObject({ 'x-mine': '1', 'x-broker-caller-id': 'anonymous' })
  for (const { headers } of bare.asked) expect(headers['proxy-authorization']).toBeUndefined()
  // Connections that nobody uses any more go, while the server stays.
  await expect.poll(() => proxy.sockets.size, { timeout: 20_000 }).toBe(0)
})

test('R8 - TLS goes through a tunnel of the proxy, and the certificate of the agent is still checked', async () => {
  const proxy = await startForwardProxy()
  const agentProxyUrl = `http://${CREDENTIALS}@127.0.0.1:${proxy.port}`
  const port = await startTlsAgent()
  const come = async (a2a: object, host = '127.0.0.1') => {
    const { http } = await serve({ connectors: { a2a: { agentProxyUrl, ...a2a } } })
    await register(http.url, agent('secret', `https://${host}:${port}/`))
    const answers = [await callAgent(http.url, 'secret', 'message/send'), await callAgent(http.url, 'secret', 'again')]
    return answers
  }
  const agentCaFile = certificate('authority.crt')
  const answer = { result: 'over TLS' }
  expect(await come({ agentCaFile })).toMatchObject([answer, answer])
  const untrusted = {
    error: { code: -32003, message: 'agent unreachable: its certificate is not trusted, or TLS failed' },
  }
  expect(await come({})).toMatchObject([untrusted, untrusted])
  // The proxy leads elsewhere than the name says: so does any that is not to be trusted.
  expect(await come({ agentCaFile }, 'agent.invalid')).toMatchObject([untrusted, untrusted])
  expect(await come({ agentTlsSkipVerify: true }, 'agent.invalid')).toMatchObject([answer, answer])
  expect(new Set(proxy.asked.map(({ line }) => line))).toEqual(
    new Set([`CONNECT 127.0.0.1:${port}`, `CONNECT agent.invalid:${port}`]),
  )
  expect(new Set(proxy.asked.map(({ authorization }) => authorization))).toEqual(new Set([BASIC]))
  await expect.poll(() => proxy.sockets.size, { timeout: 20_000 }).toBe(0)
})

/** Longer than connections may idle. */
function slow(answer: () => void): void {
  setTimeout(answer, 2_500)
}

test('R8, A2 - behind a proxy connections and tunnels are used again, and an agent may take longer than they may idle', async () => {
  const proxy = await startForwardProxy()
  const { http } = await serve({
    connectors: { a2a: { agentProxyUrl: `http://127.0.0.1:${proxy.port}`, agentTlsSkipVerify: true } },
  })
  const plain = await startAgent(({ method }, response) => {
    const answer = () => response.end('{"jsonrpc":"2.0","id":1,"result":"in the end"}')
    if (method === 'slow') slow(answer)
    else answer()
  })
  let tunnelled = 0
  const port = await startTlsAgent((answer) => {
    if (++tunnelled <= 20) answer()
    else slow(answer)
  })
  await register(http.url, agent('plain', plain.url))
  await register(http.url, agent('secure', `https://[::1]:${port}/`))
  for (let i = 0; i < 20; i++) {
    expect(await callAgent(http.url, 'plain', 'quick')).toMatchObject({ result: 'in the end' })
    expect(await callAgent(http.url, 'secure', 'quick')).toMatchObject({ result: 'over TLS' })
  }
  const tunnels = proxy.asked.filter(({ line }) => line.startsWith('CONNECT'))
  expect(new Set(tunnels.map(({ line }) => line))).toEqual(new Set([`CONNECT [::1]:${port}`]))
  expect(tunnels.length).toBeLessThan(20)
  expect(
    await Promise.all([callAgent(http.url, 'plain', 'slow'), callAgent(http.url, 'secure', 'slow')]),
  ).toMatchObject([{ result: 'in the end' }, { result: 'over TLS' }])
})

/** What calls to an agent over plain HTTP and to one over TLS come to behind this proxy. */
async function callsThrough(proxyPort: number): Promise<unknown[]> {
  const { http } = await serve({ connectors: { a2a: { agentProxyUrl: `http://127.0.0.1:${proxyPort}` } } })
  await register(http.url, agent('plain', 'http://127.0.0.1:9/'))
  await register(http.url, agent('secure', 'https://127.0.0.1:9/'))
  return [await callAgent(http.url, 'plain', 'message/send'), await callAgent(http.url, 'secure', 'message/send')]
}

function unreachable(reason: string): object {
  return { error: { code: -32003, message: `agent unreachable: ${reason}` } }
}

test("R8, A3 - a proxy that is down, refuses or disconnects makes agents unreachable, and its own answer is never the agent's", async () => {
  const refused = unreachable('connection refused')
  // Nobody listens on the port for discarding.
  expect(await callsThrough(9)).toMatchObject([refused, refused])
  const wants = await startForwardProxy({
    refuse: (_request, socket) =>
      socket.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n',
      ),
  })
  const didNot = unreachable('the proxy did not connect to it')
  expect(await callsThrough(wants.port)).toMatchObject([didNot, didNot])
  const speaks = await startForwardProxy({
    refuse: (_request, socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n{"jsonrpc":"2.0","id":1,"result":"of the proxy"}'),
  })
  expect((await callsThrough(speaks.port))[1]).toMatchObject({ error: { code: -32003 } })
  const broken = await startForwardProxy({ refuse: (_request, socket) => void socket.destroy() })
  const closed = unreachable('the connection was closed before a response came')
  expect(await callsThrough(broken.port)).toMatchObject([closed, closed])
})

test('R8, A2 - a proxy that says nothing is bounded by the deadline of the call, and its connections end with the server', async () => {
  const proxy = await startForwardProxy({ refuse: () => {} })
  const server = await serve({
    connectors: { a2a: { agentProxyUrl: `http://127.0.0.1:${proxy.port}`, defaultTimeoutSeconds: 1 } },
  })
  const { url } = server.http
  await register(url, agent('plain', 'http://127.0.0.1:9/'))
  await register(url, agent('secure', 'https://127.0.0.1:9/'))
  const late = { error: { code: -32001, message: 'agent timeout' } }
  expect(
    await Promise.all([callAgent(url, 'plain', 'message/send'), callAgent(url, 'secure', 'message/send')]),
  ).toMatchObject([late, late])
  await server.close()
  await expect.poll(() => proxy.sockets.size, { timeout: 20_000 }).toBe(0)
})

test('R8 - behind a proxy the deny list still applies at each call, to addresses and to the addresses of names', async () => {
  const proxy = await startForwardProxy()
  const agentProxyUrl = `http://127.0.0.1:${proxy.port}`
  const path = testFolder()
  const bare = await startAgent(withResult('called'))
  const { port } = new URL(bare.url)
  const first = await serve({ store: { path }, connectors: { a2a: { agentProxyUrl } } })
  for (const host of ['127.0.0.1', 'localhost']) {
    const id = `at-${host.replaceAll('.', '-')}`
    await register(first.http.url, agent(id, `http://${host}:${port}/`))
    expect(await callAgent(first.http.url, id, 'message/send')).toMatchObject({ result: 'called' })
  }
  await first.close()
  const asked = proxy.asked.length
  const agentUrlDeny = ['127.0.0.0/8', '::1']
  const { http } = await serve({ store: { path }, connectors: { a2a: { agentProxyUrl, agentUrlDeny } } })
  for (const id of ['at-127-0-0-1', 'at-localhost']) {
    expect(await callAgent(http.url, id, 'message/send'), id).toMatchObject({
      error: { code: -32003, message: 'agent unreachable: its address may not be called' },
    })
    const stream = { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }
    expect(await (await postJson(`${http.url}/a2a/${id}`, stream)).json()).toMatchObject({ error: { code: -32003 } })
  }
  const card = agent('late', `http://localhost:${port}/`)
  expect((await postJson(`${http.url}/agents/register`, card)).status).toBe(400)
  expect(proxy.asked).toHaveLength(asked)
})

test('R8 - the credentials of the proxy are neither logged nor shown', async () => {
  const agentProxyUrl = 'http://alice:hunter2@127.0.0.1:9'
  const { server, lines } = await serveLogged({ connectors: { a2a: { agentProxyUrl } } }, 'trace')
  await register(server.http.url, agent('plain', 'http://127.0.0.1:9/'))
  await register(server.http.url, agent('secure', 'https://127.0.0.1:9/'))
  const answers = [
    await callAgent(server.http.url, 'plain', 'message/send'),
    await callAgent(server.http.url, 'secure', 'message/send'),
  ]
  await server.close()
  const env = { CONNECTORSA2_A_AGENT_PROXY_URL: agentProxyUrl }
  const shown = await runCli({ args: ['--print-config'], env })
  expect(shown.code).toBe(0)
  expect(shown.stdout).toMatch(/agentProxyUrl: .*hidden/)
  const secrets = new RegExp(`alice|hunter2|${Buffer.from('alice:hunter2').toString('base64')}`)
  const log = JSON.stringify(lines)
  expect(log).toContain('/a2a/secure')
  for (const text of [JSON.stringify(answers), log, shown.stdout, shown.stderr]) {
    expect(text).not.toMatch(secrets)
  }
})

test.each([
  'https://alice:hunter2@proxy.example',
  'http://alice:hunter2@proxy.example/path',
  'http://alice:hunter2@proxy.example?x',
  'http://alice:hunter2%@proxy.example',
  'http://alice:hunter2@proxy.example:70000',
  'alice:hunter2@proxy.example:3128',
])('R8 - %s is not the URL of a proxy; the refusal says what is, and shows nothing of it', async (given) => {
  const agentProxyUrl = given
  const refused = (() => {
    try {
      createConfig({ connectors: { a2a: { agentProxyUrl } } })
    } catch (error) {
      return error instanceof Error ? JSON.stringify([error.message, Object(error)]) : ''
    }
    return ''
  })()
  expect(refused).toContain('connectors.a2a.agentProxyUrl')
  expect(refused).toContain('allowed: http://[user:password@]host[:port]')
  expect(refused).not.toMatch(/alice|hunter2|proxy\.example/)
})
