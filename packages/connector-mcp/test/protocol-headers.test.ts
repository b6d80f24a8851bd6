import {
  LATEST_PROTOCOL_VERSION,
  ListToolsResultSchema,
  InitializeResultSchema,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js'
import { CORE_TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { PROTOCOL_VERSIONS } from '../src/index.ts'
import type { McpHost } from './mcp-host.ts'
import { openHost, rpc, startHost } from './mcp-host.ts'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }
const initialize = (protocolVersion: unknown): object => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})

/** None of these tests leaves anything behind. */
let host: McpHost

beforeAll(async () => {
  host = await openHost()
})

afterAll(() => host[Symbol.asyncDispose]())

describe('M1 versions', () => {
  test('M1 - the versions are ours, and the SDK knows each', () => {
    expect(PROTOCOL_VERSIONS).toEqual(['2025-11-25', '2025-06-18', '2025-03-26'])
    expect(PROTOCOL_VERSIONS[0]).toBe(LATEST_PROTOCOL_VERSION)
    for (const version of PROTOCOL_VERSIONS) expect(SUPPORTED_PROTOCOL_VERSIONS).toContain(version)
  })

  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['nonsense', '2025-11-25'],
  ])('M1, MCP-9 - initialize with %s agrees on %s', async (asked, agreed) => {
    const answer = await host.post(initialize(asked))
    const { result } = rpc(answer)
    expect(InitializeResultSchema.parse(result).protocolVersion).toBe(agreed)
    expect(answer.headers.get('mcp-protocol-version')).toBe(agreed)
    expect(result).toMatchObject({ capabilities: { tools: {} }, serverInfo: { name: 'signalbox' } })
  })

  test('M1 - every answer carries the request’s version, else the latest', async () => {
    for (const version of PROTOCOL_VERSIONS) {
      const answer = await host.post(PING, { 'MCP-Protocol-Version': version })
      expect(answer.headers.get('mcp-protocol-version')).toBe(version)
    }
    expect((await host.post(PING)).headers.get('mcp-protocol-version')).toBe('2025-11-25')
    expect((await host.post('{')).headers.get('mcp-protocol-version')).toBe('2025-11-25')
    expect((await host.post(PING, { Origin: 'http://evil.com' })).headers.get('mcp-protocol-version')).toBe(
      '2025-11-25',
    )
  })

  test.each(['2024-11-05', '2027-01-01', 'x', '2025-11-25, 2025-06-18'])(
    'M1 - a header naming %s is 400 with -32600 and the id',
    async (version) => {
      const answer = await host.post(PING, { 'MCP-Protocol-Version': version })
      expect(answer.status).toBe(400)
      expect(rpc(answer)).toMatchObject({ id: 1, error: { code: -32600, data: { supported: PROTOCOL_VERSIONS } } })
      const got = await fetch(host.url, { headers: { Accept: 'text/event-stream', 'MCP-Protocol-Version': version } })
      expect(got.status).toBe(400)
      expect(await got.json()).toMatchObject({ id: null, error: { code: -32600 } })
    },
  )

  test("M1 - the server's name follows the revision", async () => {
    const serverInfo = { name: 's', version: '9', title: 'S', description: 'd', websiteUrl: 'https://s.example' }
    const host = await startHost({ serverInfo, instructions: 'Be good.' })
    const infos = await Promise.all(
      PROTOCOL_VERSIONS.map(async (version) => rpc(await host.post(initialize(version))).result),
    )
    expect(infos.map((result) => result?.['serverInfo'])).toEqual([
      serverInfo,
      { name: 's', version: '9', title: 'S' },
      { name: 's', version: '9' },
    ])
    expect(infos.map((result) => result?.['instructions'])).toEqual(['Be good.', 'Be good.', 'Be good.'])
  })
})

describe('M2 sessions', () => {
  test('M2 - initialize hands out an id in the header and in _meta, a new one each time', async () => {
    const first = await host.post(initialize('2025-11-25'), { 'MCP-Session-Id': 'mine' })
    const second = await host.post(initialize('2025-11-25'))
    const ids = [first, second].map(({ headers }) => headers.get('mcp-session-id') ?? '')
    expect(ids[0]).toMatch(/^[\x21-\x7e]{1,256}$/)
    expect(new Set([...ids, 'mine']).size).toBe(3)
    expect(rpc(first).result).toMatchObject({ _meta: { sessionId: ids[0] } })
  })

  test.each(['never-handed-out', '!', '~'.repeat(256)])(
    'M2 - any valid session id is accepted and echoed: %s',
    async (id) => {
      const answer = await host.post(PING, { 'MCP-Session-Id': id })
      expect(answer.status).toBe(200)
      expect(answer.headers.get('mcp-session-id')).toBe(id)
    },
  )

  test.each(['', 'a b', 'a\tb', '~'.repeat(257), 'é'])(
    'M2 - the id %j is 400 with -32600 and not echoed',
    async (id) => {
      const answer = await host.post(PING, { 'MCP-Session-Id': id })
      expect(answer.status).toBe(400)
      expect(rpc(answer)).toMatchObject({ id: 1, error: { code: -32600 } })
      expect(answer.headers.get('mcp-session-id')).toBeNull()
    },
  )

  test('M2 - a missing id is accepted, and the response has none', async () => {
    expect((await host.post(PING)).headers.get('mcp-session-id')).toBeNull()
  })

  test.each([{ 'MCP-Session-Id': 'abc' }, { 'MCP-Session-Id': 'a b' }, {}])(
    'M2 - DELETE is 405 with the allowed methods, because there is no session to end: %j',
    async (headers) => {
      const refused = await fetch(host.url, { method: 'DELETE', headers })
      expect(refused.status).toBe(405)
      expect(refused.headers.get('allow')).toBe('GET, POST')
      expect(await refused.text()).toBe('')
    },
  )
})

describe('M6 accept', () => {
  test.each([
    'application/json',
    'application/json, text/event-stream',
    'text/event-stream, application/json;q=0.5',
    '*/*',
    'text/event-stream, */*',
    'application/*',
    'text/html',
    'text/event-stream;q=0, application/json',
    'image/png, text/plain',
  ])('M6 - Accept %s gets JSON', async (accept) => {
    const answer = await host.post(PING, { Accept: accept })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}')
  })

  test.each([
    'text/event-stream',
    'Text/Event-Stream',
    'text/event-stream, text/html',
    'text/event-stream, application/json;q=0',
  ])('M6 - Accept %s gets one event', async (accept) => {
    const answer = await host.post(PING, { Accept: accept })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    expect(answer.text).toBe('event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')
    const failed = await host.post({ jsonrpc: '2.0', id: 1, method: 'no' }, { Accept: accept })
    expect(failed.text).toMatch(/^event: message\ndata: .*-32601/)
  })

  test('tools/list - the core tools, in a form the SDK accepts', async () => {
    const { result } = rpc(await host.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }))
    const { tools, nextCursor } = ListToolsResultSchema.parse(result)
    expect(tools.map(({ name }) => name)).toEqual(CORE_TOOL_NAMES)
    expect(nextCursor).toBeUndefined()
  })
})
