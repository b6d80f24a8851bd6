import { AuthenticationError } from '@signalbox/http-kit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { PROTOCOL_VERSIONS, SUPPORTED_VERSIONS } from '../src/index.ts'
import type { McpHost } from './mcp-host.ts'
import { openHost, rpc, startHost, toolCall } from './mcp-host.ts'
import { ask, callTool, META } from './stateless-client.ts'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'

/** None of these tests leaves anything behind. */
let host: McpHost

beforeAll(async () => {
  host = await openHost()
})

afterAll(() => host[Symbol.asyncDispose]())

/** The answer to a request with these `_meta` and headers, whatever they are. */
function send(meta: unknown, headers: Record<string, string>, method = 'server/discover') {
  const params = meta === undefined ? {} : { params: { _meta: meta } }
  return host.post({ jsonrpc: '2.0', id: 'x', method, ...params }, headers)
}

const without = (key: string): object => Object.fromEntries(Object.entries(META).filter(([name]) => name !== key))
const MODERN = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' }

/** A header value as clients encode names that are not plain ASCII. */
const inBase64 = (name: string): string => `=?base64?${Buffer.from(name).toString('base64')}?=`

describe('M16 recognition', () => {
  test('M16 - the versions are those of initialize, and 2026-07-28 before them', () => {
    expect(SUPPORTED_VERSIONS).toEqual(['2026-07-28', ...PROTOCOL_VERSIONS])
  })

  test.each([
    ['no params', undefined],
    ['an empty _meta', {}],
    ['a _meta that is not an object', 'x'],
    ['no version', without(VERSION)],
    ['a version that is not a string', { ...META, [VERSION]: 20260728 }],
    ['no capabilities', without(CAPABILITIES)],
    ['capabilities that are not an object', { ...META, [CAPABILITIES]: [] }],
    ['a clientInfo that is text', { ...META, [CLIENT_INFO]: 'x' }],
    ['a clientInfo that is null', { ...META, [CLIENT_INFO]: null }],
    ['a clientInfo without a version', { ...META, [CLIENT_INFO]: { name: 'x' } }],
  ])('M16 - a request whose header names 2026-07-28 is 400 with -32602: %s', async (_name, meta) => {
    const answer = await send(meta, MODERN)
    expect(answer.status).toBe(400)
    expect(rpc(answer)).toMatchObject({ id: 'x', error: { code: -32602 } })
    expect(rpc(answer).error?.message).toMatch(
      /_meta\["io\.modelcontextprotocol\/(protocolVersion|clientCapabilities|clientInfo)"\]/,
    )
    expect(answer.headers.get('mcp-protocol-version')).toBe('2026-07-28')
  })

  test('M16 - a request without clientInfo, with unknown members and with a session id is served', async () => {
    const meta = { ...without(CLIENT_INFO), 'com.example/x': 1 }
    const answer = await send(meta, { ...MODERN, 'MCP-Session-Id': 'a b', 'Last-Event-ID': '3' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('mcp-session-id')).toBeNull()
    expect(answer.headers.get('mcp-protocol-version')).toBe('2026-07-28')
  })

  test.each([
    ['is missing', META, { 'Mcp-Method': 'server/discover' }, 'missing'],
    ['names an older revision', META, { ...MODERN, 'MCP-Protocol-Version': '2025-11-25' }, '"2025-11-25"'],
    ['names another revision than the body', { ...META, [VERSION]: '2027-01-01' }, MODERN, '"2026-07-28"'],
  ])('M16 - it is 400 with -32020 if the version header %s', async (_name, meta, headers, shown) => {
    const answer = await send(meta, headers)
    expect(answer.status).toBe(400)
    expect(rpc(answer)).toMatchObject({ id: 'x', error: { code: -32020 } })
    expect(rpc(answer).error?.message).toContain(`MCP-Protocol-Version is ${shown}; it must be`)
  })

  test.each(['2027-01-01', '2025-11-25', 'x'])('M16 - a body that names %s is 400 with -32022', async (version) => {
    const answer = await send({ ...META, [VERSION]: version }, { ...MODERN, 'MCP-Protocol-Version': version })
    expect(answer.status).toBe(400)
    expect(rpc(answer)).toMatchObject({
      id: 'x',
      error: { code: -32022, data: { supported: SUPPORTED_VERSIONS, requested: version } },
    })
  })

  test('M16 - a request without _meta and header is one of an older revision, and gets none of the new codes', async () => {
    const discover = await send(undefined, {})
    expect([discover.status, rpc(discover).error?.code]).toEqual([200, -32601])
    const unknown = await send(undefined, { 'MCP-Protocol-Version': '2027-01-01', 'Mcp-Method': 'other' })
    expect([unknown.status, rpc(unknown).error?.code]).toEqual([400, -32600])
    const call = await host.post(toolCall('queue_peek', { channel: 'q' }), { 'Mcp-Method': 'x', 'Mcp-Name': 'y' })
    expect([call.status, rpc(call).error?.code]).toEqual([200, -32602])
  })
})

describe('M16 mirrored headers', () => {
  test.each([
    ['Mcp-Method is missing', { 'Mcp-Method': '' }],
    ['Mcp-Method is different', { 'Mcp-Method': 'tools/list' }],
    ['Mcp-Method is in other case', { 'Mcp-Method': 'Tools/Call' }],
    ['Mcp-Method is encoded', { 'Mcp-Method': inBase64('tools/call') }],
    ['Mcp-Name is missing', { 'Mcp-Name': '' }],
    ['Mcp-Name is different', { 'Mcp-Name': 'queue_send' }],
    ['Mcp-Name is in other case', { 'Mcp-Name': 'CHANNEL_LIST' }],
    ['Mcp-Name is not base64', { 'Mcp-Name': '=?base64?channel_list?=' }],
    ['Mcp-Name is base64 without its padding', { 'Mcp-Name': inBase64('channel_lists').replace('=?=', '?=') }],
    ['Mcp-Name is not UTF-8', { 'Mcp-Name': '=?base64?/w==?=' }],
    ['Mcp-Name has a marker in other case', { 'Mcp-Name': inBase64('channel_list').replace('base64', 'BASE64') }],
    ['Mcp-Name is not ASCII', { 'Mcp-Name': '\u00e9' }],
  ])('M16 - it is 400 with -32020, and nothing runs, if %s', async (_name, headers) => {
    const answer = await callTool(host, 'channel_list', {}, { headers })
    expect(answer.status).toBe(400)
    expect(rpc(answer)).toMatchObject({
      id: 1,
      error: { code: -32020, message: expect.stringContaining('it must be') },
    })
  })

  test('M16 - a name in base64 is decoded, and blanks around a value are not part of it', async () => {
    const encoded = await callTool(host, 'channel_list', {}, { headers: { 'Mcp-Name': inBase64('channel_list') } })
    expect(encoded.status).toBe(200)
    const name = 'sum Σ'
    const unknown = { 'Mcp-Name': inBase64(name) }
    expect(rpc(await callTool(host, name, {}, { headers: unknown })).error?.code).toBe(-32602)
    expect((await callTool(host, 'channel_list', {}, { headers: { 'Mcp-Name': ' channel_list ' } })).status).toBe(200)
  })

  test('M16 - a name that looks encoded has to be encoded', async () => {
    const name = '=?base64?literal?='
    expect(rpc(await callTool(host, name, {})).error?.code).toBe(-32020)
    const headers = { 'Mcp-Name': inBase64(name) }
    expect(rpc(await callTool(host, name, {}, { headers })).error?.code).toBe(-32602)
  })

  test('M16 - the name of a resource is checked too', async () => {
    const params = { uri: 'test://a' }
    const other = await ask(host, 'resources/read', params, { headers: { 'Mcp-Name': 'test://b' } })
    expect(rpc(other).error?.code).toBe(-32020)
    expect((await ask(host, 'resources/read', params, { headers: { 'Mcp-Name': 'test://a' } })).status).toBe(404)
  })
})

describe('M18 statuses', () => {
  test.each([
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'prompts/list',
    'resources/list',
    'tasks/list',
    'no/such',
  ])('M18 - %s is 404 with -32601 and the id', async (method) => {
    const answer = await ask(host, method, {}, { id: 'y' })
    expect(answer.status).toBe(404)
    expect(rpc(answer)).toMatchObject({ id: 'y', error: { code: -32601 } })
    expect(rpc(answer).error?.message).toContain('server/discover, tools/list, tools/call and subscriptions/listen')
  })

  test('M18 - an unknown tool and an unknown cursor are -32602 with HTTP 200', async () => {
    const tool = await callTool(host, 'no_such_tool', {})
    expect([tool.status, rpc(tool).error?.code]).toEqual([200, -32602])
    const cursor = await ask(host, 'tools/list', { cursor: 'x' })
    expect([cursor.status, rpc(cursor).error?.code]).toEqual([200, -32602])
  })

  test.each([
    ['malformed JSON', '{', -32700],
    ['a batch', '[]', -32600],
    ['params that are not an object', '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":[]}', -32602],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{}}', -32600],
    ['a request without id', '{"jsonrpc":"2.0","method":"tools/call","params":{}}', -32600],
  ])('M18 - %s is 400', async (_name, body, code) => {
    const answer = await host.post(body, MODERN)
    expect([answer.status, rpc(answer).error?.code]).toEqual([400, code])
    expect(answer.headers.get('mcp-protocol-version')).toBe('2026-07-28')
  })

  test('M18 - a notification is 202, with or without _meta', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    for (const body of [notification, { ...notification, params: { ...notification.params, _meta: META } }]) {
      const answer = await host.post(body, { 'MCP-Protocol-Version': '2026-07-28' })
      expect([answer.status, answer.text]).toEqual([202, ''])
    }
  })

  test.each(['GET', 'DELETE', 'PUT'])('M18 - %s is 405 with Allow: POST', async (method) => {
    const headers = { Accept: 'text/event-stream', 'MCP-Protocol-Version': '2026-07-28' }
    const response = await fetch(host.url, { method, headers })
    expect([response.status, response.headers.get('allow'), await response.text()]).toEqual([405, 'POST', ''])
    expect(response.headers.get('mcp-protocol-version')).toBe('2026-07-28')
  })

  test('M18, S5 - without valid credentials it is 401 with WWW-Authenticate, and 200 in the older revisions', async () => {
    const guarded = await startHost({
      authenticator: {
        authenticate: () => {
          throw new AuthenticationError('no token')
        },
      },
    })
    for (const method of ['server/discover', 'tools/list']) {
      const answer = await ask(guarded, method)
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="signalbox"')
      expect(rpc(answer)).toEqual({ jsonrpc: '2.0', id: 1, error: { code: -32010, message: 'Authentication failed' } })
    }
    const older = await guarded.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect([older.status, older.headers.get('www-authenticate')]).toEqual([200, null])
  })

  test('M18 - an origin that is not trusted is 403', async () => {
    const answer = await ask(host, 'server/discover', {}, { headers: { Origin: 'http://evil.com' } })
    expect([answer.status, rpc(answer).error?.code]).toEqual([403, -32600])
  })
})
