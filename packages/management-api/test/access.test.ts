import { TrustedProxies } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import { MANAGEMENT_ROUTES } from '../src/index.ts'
import { bearer, manage, tokens } from './management-server.ts'
import { openMonitor } from './monitor-client.ts'

const READS = [
  '/api/config',
  '/api/snapshot',
  '/v1/stats/channels',
  '/v1/stats/queues',
  '/v1/stats/events_stores',
  '/v1/stats/clients',
  '/api/stats/channels',
  '/api/stats/queues',
  '/api/stats/events_stores',
  '/api/stats/clients',
  '/api/audit',
  '/api/agents',
  '/api/webhooks',
  '/api/history',
  '/api/channels',
  '/api/security',
  '/api/settings',
]

const ACTIONS: Readonly<Record<string, object>> = {
  create_channel: { channel: 'a', type: 'queues' },
  send_queue_message: { channel: 'a', body: 'x' },
  peek_queue_messages: { channel: 'a', max_messages: 1 },
  receive_queue_messages: { channel: 'a', max_messages: 1 },
  purge_queue: { channel: 'a' },
  delete_channel: { channel: 'a', type: 'queues' },
  publish_event: { channel: 'a', body: 'x' },
  publish_event_store: { channel: 'a', body: 'x' },
  send_command: { channel: 'a', body: 'x', timeout_seconds: 1 },
  send_query: { channel: 'a', body: 'x', timeout_seconds: 1 },
  redrive_dead_letters: { channel: 'a' },
}

test('S3, MGMT-2, MGMT-3 - each route with each role', async () => {
  const { get, act, url } = await manage({ authenticator: tokens() })
  for (const path of [...READS, '/metrics', '/openapi.json']) {
    const status = async (headers: Record<string, string>) => {
      const response = await fetch(url + path, { headers })
      // A connection with an unread body stays open until the garbage collector finds it.
      await response.arrayBuffer()
      return response.status
    }
    expect([path, await status({})]).toEqual([path, 401])
    expect([path, await status(bearer('a'))]).toEqual([path, 403])
    expect([path, await status(bearer('a:Owner'))]).toEqual([path, 403])
    for (const role of ['ReadOnly', 'ReadWrite', 'Admin'])
      expect([path, role, await status(bearer(`a:${role}`))]).toEqual([path, role, 200])
  }
  for (const [action, args] of Object.entries(ACTIONS)) {
    const end = async (headers: Record<string, string>) => {
      const { status, data } = await act(action, args, headers)
      return [action, status, data.code]
    }
    expect(await end({})).toEqual([action, 401, 'UNAUTHENTICATED'])
    expect(await end(bearer('a'))).toEqual([action, 403, 'ROLE_MISSING'])
    expect(await end(bearer('a:ReadOnly'))).toEqual([action, 403, 'ROLE_MISSING'])
    expect((await end(bearer('a:ReadWrite')))[1]).toBe(200)
  }
  const deregister = async (role: string) => {
    const { status, data } = await act('deregister_agent', { agent_id: 'x' }, bearer(`a:${role}`))
    return [status, data.code]
  }
  expect(await deregister('ReadWrite')).toEqual([403, 'ROLE_MISSING'])
  expect(await deregister('Admin')).toEqual([200, 'AGENT_NOT_FOUND'])
  expect(await get('/api/snapshot')).toEqual({
    status: 401,
    error: true,
    error_string: 'Authentication failed',
    data: { code: 'UNAUTHENTICATED' },
  })
}, 60_000)

test('MGMT-3, MGMT-5 - ReadOnly reads payloads by the monitor and by GET; the action peek needs ReadWrite', async () => {
  const { url, get, act, broker } = await manage({ authenticator: tokens() })
  for (const [role, status] of [
    ['ReadOnly', 403],
    ['ReadWrite', 200],
  ] as const) {
    const headers = bearer(`a:${role}`)
    const monitor = await openMonitor(url, '', headers)
    if ('status' in monitor) throw new Error(`${role}: ${monitor.status}`)
    await monitor.until(({ kind }) => kind === 'started')
    await broker.as({ clientId: 'shop' }).queues.send('q', { body: new TextEncoder().encode('a payload') })
    expect(await monitor.until(({ kind }) => kind === 'message')).toMatchObject({ body: 'a payload' })
    const read = await get('/api/messages?type=queues&channel=q', headers)
    expect(read.data.items[0]).toMatchObject({ body: 'a payload' })
    expect((await act('peek_queue_messages', { channel: 'q', max_messages: 1 }, headers)).status).toBe(status)
  }
})

test('S3 - without control-plane authentication every caller is Admin', async () => {
  const { act } = await manage()
  expect(await act('deregister_agent', { agent_id: 'x' })).toMatchObject({
    status: 200,
    data: { code: 'AGENT_NOT_FOUND' },
  })
})

test('management - 401 has a challenge, and is sent before the body is read and before the node is ready', async () => {
  const { url } = await manage({ authenticator: tokens(), started: false })
  const response = await fetch(`${url}/api/actions/create_channel`, { method: 'POST', body: '{' })
  expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="signalbox"'])
})

test('S6 - without a list the own origin is trusted, and no page of another port, host or scheme, WebSockets included', async () => {
  const { url, get } = await manage()
  const { port } = new URL(url)
  const status = async (origin: string, host = `127.0.0.1:${port}`) => {
    const headers = { origin, host }
    const monitor = await openMonitor(url, '', headers)
    const read = await get('/api/config', { origin })
    if (!('status' in monitor)) monitor.socket.close()
    const seen = 'status' in monitor ? monitor.status : 101
    return host.startsWith('127.') ? [seen, read.status] : [seen]
  }
  expect(await status(url)).toEqual([101, 200])
  expect(await status(`http://localhost:${port}`, `LOCALHOST:${port}`)).toEqual([101])
  expect(await status(`http://[::1]:${port}`, `[::1]:${port}`)).toEqual([101])
  for (const origin of [
    'http://localhost:3000',
    'http://127.0.0.1:3000',
    'http://127.0.0.1',
    `http://localhost:${port}`,
    `https://127.0.0.1:${port}`,
    'null',
  ]) {
    expect([origin, ...(await status(origin))]).toEqual([origin, 403, 403])
  }
  // A page can reach the listener under its own host name.
  expect(await status(`http://evil.example:${port}`, `evil.example:${port}`)).toEqual([403])
  expect(await status('http://localhost:3000', 'localhost')).toEqual([403])
})

test('S6 - with tokens the own origin may have any name, and https behind a trusted proxy', async () => {
  const behind = { host: 'console.example', ...bearer('a:ReadOnly') }
  const opens = async (url: string, origin: string) =>
    !('status' in (await openMonitor(url, '', { ...behind, origin })))
  const direct = await manage({ authenticator: tokens() })
  expect(await opens(direct.url, 'http://console.example')).toBe(true)
  expect(await opens(direct.url, 'https://console.example')).toBe(false)
  const frontDoor = { trustedProxies: new TrustedProxies(['127.0.0.1']) }
  const proxied = await manage({ authenticator: tokens(), frontDoor })
  expect(await opens(proxied.url, 'https://console.example')).toBe(true)
  expect(await opens(proxied.url, 'https://console.example:8443')).toBe(false)
})

test('S5, S6 - a foreign origin is refused before anything else, WebSockets included', async () => {
  const foreign = { origin: 'https://evil.example' }
  const { url, get, act } = await manage({ authenticator: tokens() })
  const refused = {
    status: 403,
    error: true,
    error_string: 'origin not allowed; add it to API_TRUSTED_ORIGINS',
    data: { code: 'ORIGIN_REFUSED' },
  }
  expect(await get('/api/config', { ...foreign, ...bearer('a:Admin') })).toEqual(refused)
  expect(await get('/metrics', foreign)).toEqual(refused)
  expect(await act('create_channel', ACTIONS['create_channel'], foreign)).toEqual(refused)
  const monitor = await openMonitor(url, '', { ...foreign, ...bearer('a:Admin') })
  expect(monitor).toMatchObject({
    status: 403,
    envelope: { error_string: 'origin not allowed; add it to API_TRUSTED_ORIGINS' },
  })
  const listed = await manage({ trustedOrigins: ['https://console.example'] })
  expect((await listed.get('/api/config', { origin: 'https://console.example' })).status).toBe(200)
  expect((await listed.get('/api/config', { origin: 'http://localhost' })).status).toBe(403)
})

const WRITES = MANAGEMENT_ROUTES.filter(({ listener, method }) => listener === 'management' && method !== 'GET')

/** The content types that a form, or a script without a preflight, can send. */
const SIMPLE_TYPES = [
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'text/plain; charset=utf-8',
  '',
]

test('S6, MGMT-18 - a form of another page cannot write, even from a trusted origin', async () => {
  const { url, broker, api } = await manage({ trustedOrigins: ['http://localhost:3000'] })
  await broker.as({ clientId: 'shop' }).channels.create('queues', 'q')
  expect(WRITES.length).toBeGreaterThan(10)
  for (const { path, method } of WRITES) {
    for (const type of SIMPLE_TYPES) {
      const response = await fetch(url + path, {
        method,
        headers: { origin: 'http://localhost:3000', ...(type === '' ? {} : { 'content-type': type }) },
        body: new Blob(['{"channel":"q","type":"queues","body":"x"}']),
      })
      expect([path, type, response.status]).toEqual([path, type, 415])
    }
  }
  expect(await broker.as({ clientId: 'shop' }).queues.peek('q', { maxMessages: 1 })).toEqual([])
  expect(api.audit.dropped).toBe(0)
})

test('S6, MGMT-18 - a preflight of any origin gets no permission, so no page of another origin sends JSON', async () => {
  const { url } = await manage()
  for (const origin of ['https://evil.example', 'http://localhost:3000', 'null']) {
    for (const { path } of WRITES) {
      const { headers } = await fetch(url + path, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      })
      expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  }
})

test('S6, MGMT-18 - a page of an origin that is not trusted cannot write', async () => {
  const { url } = await manage()
  const { port } = new URL(url)
  for (const origin of ['https://evil.example', 'null', 'http://localhost:3000', `https://127.0.0.1:${port}`]) {
    for (const { path, method } of WRITES) {
      const headers = { origin, 'content-type': 'application/json' }
      const { status } = await fetch(url + path, { method, headers, body: '{"channel":"q"}' })
      expect([path, status]).toEqual([path, 403])
    }
  }
})
