import { request } from 'node:http'

import { agentChannel } from '../src/requests/agent-query.ts'
import { expect, test } from 'vitest'

import { echo, startAgent } from './agents.ts'
import type { GatewayHost } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

/** A POST with exactly these headers; `fetch` would not send most of them. */
function rawPost(host: GatewayHost, headers: readonly string[]): Promise<number> {
  const body = messageSend()
  const all = ['Host', 'gateway', 'Content-Type', 'application/json', 'Content-Length', String(body.length), ...headers]
  return new Promise((resolve, reject) => {
    request({ port: host.port, path: '/a2a/agent-1', method: 'POST', headers: all }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
      .on('error', reject)
      .end(Buffer.from(body))
  })
}

async function openWithAgent() {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', `${agent.url}some/path?q=1`)
  return { host, agent }
}

const KEPT_BACK = {
  connection: 'close, X-Hop, keep-alive',
  'keep-alive': 'timeout=5',
  'proxy-connection': 'x',
  te: 'trailers',
  upgrade: 'x',
  'x-hop': '1',
  'HTTP2-Settings': 'x',
  'X-Original-URL': '/admin',
  'X-Original-URI': '/admin',
  'X-Rewrite-URL': '/admin',
  'X-HTTP-Method': 'DELETE',
  'X-HTTP-Method-Override': 'DELETE',
  'X-Method-Override': 'DELETE',
  accept: 'text/plain',
  'accept-encoding': 'gzip',
  authorization: 'Bearer secret',
  cookie: 'a=secret',
  'proxy-authorization': 'secret',
  origin: 'http://localhost',
  forwarded: 'for=192.0.2.1',
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-anything': 'x',
  'x-real-ip': '192.0.2.1',
  'x-broker-caller-id': 'root',
  'X-Broker-Stream-ID': 'mine',
  'x-broker-anything': 'x',
  'X-Broker-Hops': '3',
  X_Broker_Caller_ID: 'root',
  x_anything: 'x',
}

test('A5, GW-4, GW-5 - headers: headers of the caller reach the agent, also as tags; broker and hop-by-hop headers do not', async () => {
  const { host, agent } = await openWithAgent()
  const kept = {
    'X-Trace': 'a b',
    traceparent: '00-1-2-03',
    'A2A-Extensions': 'urn:x',
    'Accept-Language': 'de',
    'X-Empty': '',
  }
  const heard: Readonly<Record<string, string>>[] = []
  // Another member of the group that serves the agent hears of some of its Queries.
  await host.system.queries.subscribe(agentChannel('agent-1'), { group: 'watch' }, ({ tags }) => {
    heard.push(tags)
    return new Promise(() => {})
  })
  expect(await rawPost(host, Object.entries({ ...KEPT_BACK, ...kept }).flat())).toBe(200)
  const { headers = {}, url, method } = agent.asked[0] ?? {}
  expect([method, url]).toEqual(['POST', '/some/path?q=1'])
  expect(headers).toEqual({
    host: `127.0.0.1:${agent.port}`,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'content-length': String(messageSend().length),
    accept: 'application/json',
    'accept-encoding': 'identity',
    'x-broker-caller-id': 'anonymous',
    'x-broker-hops': '4',
    'x-trace': 'a b',
    traceparent: '00-1-2-03',
    'a2a-extensions': 'urn:x',
    'accept-language': 'de',
    'x-empty': '',
  })
  const tags = Object.entries(heard[0] ?? {}).filter(([name]) => name.startsWith('a2a_hdr_'))
  expect(Object.fromEntries(tags)).toEqual({
    'a2a_hdr_x-trace': 'a b',
    a2a_hdr_traceparent: '00-1-2-03',
    'a2a_hdr_a2a-extensions': 'urn:x',
    'a2a_hdr_accept-language': 'de',
    'a2a_hdr_x-empty': '',
  })
})

test('A5 - headers: two hundred of them, repeated ones and odd bytes arrive', async () => {
  const { host, agent } = await openWithAgent()
  const many = Array.from({ length: 200 }, (_, i) => [`X-H${i}`, `v${i}`]).flat()
  await rawPost(host, [
    ...many,
    'X-Twice',
    '1',
    'X-Twice',
    '2',
    'X-Latin',
    'caf\u00e9',
    '__proto__',
    'p',
    'constructor',
    'c',
  ])
  const { headers = {} } = agent.asked[0] ?? {}
  for (let i = 0; i < 200; i++) expect(headers[`x-h${i}`]).toBe(`v${i}`)
  expect(headers).toMatchObject({ 'x-twice': '1, 2', 'x-latin': 'caf\u00e9', constructor: 'c' })
})

test('A5 - headers: line ends and other characters that HTTP forbids inject no header', async () => {
  const { host, agent } = await openWithAgent()
  const { body } = await host.requests.request('agent-1', Buffer.from(messageSend()), {
    caller: { clientId: 'tester' },
    headers: {
      'x-good': '1',
      'x-evil': 'a\r\nX-Broker-Caller-ID: root',
      'x-nul': 'a\0',
      'bad name': 'x',
      'x-wide': '\u{1f600}',
    },
  })
  expect(Buffer.from(body).toString()).toContain('"result"')
  const { headers = {} } = agent.asked[0] ?? {}
  expect(headers).toMatchObject({ 'x-good': '1', 'x-broker-caller-id': 'tester' })
  for (const name of ['x-evil', 'x-nul', 'bad name', 'x-wide']) expect(headers[name]).toBeUndefined()
})

test('A5 - headers: a caller that writes a line end into a header is refused by HTTP itself', async () => {
  const { host, agent } = await openWithAgent()
  agent.script = echo
  const connection = await RawConnection.open(host.port)
  connection.socket.write('POST /a2a/agent-1 HTTP/1.1\r\nHost: x\r\nX-Evil: a\rX-Broker-Caller-ID: root\r\n\r\n')
  expect(await connection.until('\r\n\r\n')).toContain('400 Bad Request')
  expect(agent.asked).toEqual([])
})
