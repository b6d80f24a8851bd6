import { expect, test } from 'vitest'

import { manage } from './management-server.ts'

test('MGMT-1 - answers are {error, error_string, data}, and nothing else', async () => {
  const { get, act } = await manage()
  const done = await get('/api/snapshot')
  expect(Object.keys(done)).toEqual(['status', 'error', 'error_string', 'data'])
  expect([done.status, done.error, done.error_string]).toEqual([200, false, ''])
  const refused = await act('purge_queue', { channel: 'nobody' })
  expect(refused).toEqual({
    status: 200,
    error: true,
    error_string: 'there is no channel "nobody" of type queues',
    data: { code: 'CHANNEL_NOT_FOUND', channel: 'nobody', type: 'queues' },
  })
})

test('MGMT-4 - until the start is over every route answers that it is not ready, but for the monitor', async () => {
  const server = await manage({ started: false })
  const notReady = { status: 200, error: true, error_string: 'api service not ready', data: null }
  for (const path of [
    '/api/config',
    '/api/snapshot',
    '/api/agents',
    '/api/webhooks',
    '/api/audit',
    '/v1/stats/queues',
    '/api/stats/clients',
  ])
    expect(await server.get(path)).toEqual(notReady)
  expect(await server.act('create_channel', { channel: 'a', type: 'queues' })).toEqual(notReady)
  expect((await fetch(`${server.url}/metrics`)).status).toBe(200)
  server.start()
  expect(await server.get('/api/snapshot')).toMatchObject({ error: false })
  expect(await server.get('/v1/stats/channels')).toMatchObject({ data: { items: [], total: 0, next_cursor: null } })
})

test('management - answers have no CORS headers and may not be cached', async () => {
  const { url } = await manage()
  const response = await fetch(`${url}/api/config`, { headers: { origin: 'http://localhost:3000' } })
  expect([...response.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(
    (await fetch(`${url}/api/config`, { method: 'OPTIONS', headers: { origin: 'http://localhost' } })).status,
  ).toBe(404)
})

test('management - invalid query parameters are all reported', async () => {
  const { get } = await manage()
  const { status, error_string, data } = await get('/v1/stats/channels?limit=0&limit=2&type=topics&nope=1&cursor=%FF')
  expect([status, data.code]).toEqual([200, 'PARAMETER_INVALID'])
  for (const name of ['limit', 'type', 'nope', '%FF']) expect(error_string).toContain(name)
  expect(error_string).toContain('one of queues, events, events_store, commands, queries')
  expect(await get('/api/config?x=1')).toMatchObject({ error: true, data: { code: 'PARAMETER_INVALID' } })
  expect(await get('/api/audit?from=yesterday&limit=1001')).toMatchObject({
    data: { problems: [{ parameter: 'from' }, { parameter: 'limit', allowed: 'a whole number from 1 to 1000' }] },
  })
})

test.each([
  ['not JSON', '{', { 'content-type': 'application/json' }, 400, 'BODY_INVALID'],
  ['empty', '', { 'content-type': 'application/json' }, 400, 'BODY_INVALID'],
  ['not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), { 'content-type': 'application/json' }, 400, 'BODY_INVALID'],
  ['of another type', '{}', { 'content-type': 'text/plain' }, 415, 'MEDIA_TYPE_UNSUPPORTED'],
  ['of no type', new Uint8Array([0x7b, 0x7d]), {}, 415, 'MEDIA_TYPE_UNSUPPORTED'],
  ['of a type that is none', '{}', { 'content-type': 'nonsense;;' }, 415, 'MEDIA_TYPE_UNSUPPORTED'],
  ['encoded', '{}', { 'content-type': 'application/json', 'content-encoding': 'gzip' }, 415, 'MEDIA_TYPE_UNSUPPORTED'],
  ['too large', `"${'x'.repeat(5000)}"`, { 'content-type': 'application/json' }, 413, 'BODY_TOO_LARGE'],
  ['no object', '[1]', { 'content-type': 'application/json' }, 200, 'ARGUMENT_INVALID'],
])(
  'management - a body that is %s is refused in the envelope, and nothing happens',
  async (_what, body, headers, ...ends) => {
    const { url, get } = await manage({ maxBodyBytes: 4096 })
    const response = await fetch(`${url}/api/actions/create_channel`, { method: 'POST', body, headers })
    const envelope = (await response.json()) as { error: boolean; data: { code: string } }
    expect([response.status, envelope.data.code]).toEqual(ends)
    expect(envelope.error).toBe(true)
    expect(await get('/v1/stats/channels')).toMatchObject({ data: { total: 0 } })
  },
)

test('management - an internal error is 500, is logged, and shows no details', async () => {
  const reported: unknown[] = []
  const { get } = await manage({
    config: () => {
      throw new Error('/secret/path')
    },
    hooks: { failed: (error) => reported.push(error) },
  })
  expect(await get('/api/config')).toEqual({
    status: 500,
    error: true,
    error_string: 'internal error',
    data: { code: 'INTERNAL' },
  })
  expect(reported).toHaveLength(1)
})
