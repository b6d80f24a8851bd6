import { encodeText } from '@signalbox/broker-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { AgentDirectory } from '../src/index.ts'
import { SUPPORTED_VERSIONS } from '../src/index.ts'
import type { McpHost } from './mcp-host.ts'
import { openHost, resultText, rpc, startHost, toolCall } from './mcp-host.ts'
import { ask, callTool } from './stateless-client.ts'

const SERVER = { name: 's', version: '9', title: 'S', description: 'd', websiteUrl: 'https://s.example' }
const SERVER_META = { 'io.modelcontextprotocol/serverInfo': SERVER }

/** None of these tests leaves anything behind. */
let host: McpHost

beforeAll(async () => {
  host = await openHost({ serverInfo: SERVER, instructions: 'Be good.' })
})

afterAll(() => host[Symbol.asyncDispose]())

/** The messages in the text of an event stream. */
function messagesIn(text: string): unknown[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as unknown)
}

/** The headers that an agent gets of each call. */
async function forwarded(call: (host: McpHost) => Promise<unknown>): Promise<unknown> {
  const seen: unknown[] = []
  const agents: AgentDirectory = {
    list: () => Promise.resolve([]),
    get: (agent_id) => Promise.resolve({ agent_id, name: 'A' }),
    request: (_agentId, _envelope, { headers }) => {
      seen.push(headers)
      const body = encodeText('{"jsonrpc":"2.0","id":1,"result":{}}')
      return Promise.resolve({ executed: true, error: '', status: 200, body })
    },
  }
  await call(await startHost({ agents }))
  return seen
}

describe('M17 results', () => {
  test('M17 - server/discover names the versions, the capabilities and the server, and may be cached', async () => {
    expect(rpc(await ask(host, 'server/discover')).result).toEqual({
      resultType: 'complete',
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: { tools: {} },
      instructions: 'Be good.',
      ttlMs: 300_000,
      cacheScope: 'public',
      _meta: SERVER_META,
    })
  })

  test('M17 - tools/list has the tools of the older revisions, in the same order, and cache hints', async () => {
    const older = rpc(await host.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).result
    const { result } = rpc(await ask(host, 'tools/list'))
    expect(result).toEqual({
      resultType: 'complete',
      tools: older?.['tools'],
      ttlMs: 300_000,
      cacheScope: 'public',
      _meta: SERVER_META,
    })
    expect(older).not.toHaveProperty('ttlMs')
  })

  test('M17 - the list of a named caller is for this caller alone', async () => {
    const named = await startHost({ authenticator: { authenticate: () => ({ clientId: 'c' }) } })
    expect(rpc(await ask(named, 'tools/list')).result).toMatchObject({ cacheScope: 'private' })
    expect(rpc(await ask(named, 'server/discover')).result).toMatchObject({ cacheScope: 'public' })
  })

  test('M17 - a tool result has the members of the older revisions, resultType and the server', async () => {
    const older = rpc(await host.call('channel_list', {})).result
    expect(rpc(await callTool(host, 'channel_list', {})).result).toEqual({
      resultType: 'complete',
      ...older,
      _meta: SERVER_META,
    })
  })

  test('M17 - a failed tool is isError: true in a complete result', async () => {
    const { result } = rpc(await callTool(host, 'queue_send', { channel: '_AGENTS_.x', body: 'x' }))
    expect(result).toMatchObject({ resultType: 'complete', isError: true, _meta: SERVER_META })
  })

  test('M6, M17 - a client that reads only event streams gets one event', async () => {
    const answer = await ask(host, 'server/discover', {}, { headers: { Accept: 'text/event-stream' } })
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    expect(messagesIn(answer.text)).toMatchObject([{ result: { resultType: 'complete' } }])
  })
})

describe('M7 arguments', () => {
  test('M7 - arguments that fail the schema are isError: true, with the text and the problems of the older error', async () => {
    const args = { channel: 5, max_messages: 1000, extra: true }
    const { error } = rpc(await host.call('queue_receive', args))
    const answer = await callTool(host, 'queue_receive', args)
    expect([answer.status, error?.code]).toEqual([200, -32602])
    expect(resultText(answer)).toBe(error?.message)
    expect(rpc(answer).result).toMatchObject({ isError: true, structuredContent: error?.data })
    expect(error?.data).toMatchObject({ problems: [{ argument: 'channel' }, { argument: 'max_messages' }, {}] })
  })

  test('M7 - an argument that the broker rejects is isError: true as well', async () => {
    const args = { channel: 'q', body: 'x', max_receive_count: 1, dead_letter_queue: 'q' }
    expect(rpc(await host.call('queue_send', args)).error?.code).toBe(-32602)
    expect(rpc(await callTool(host, 'queue_send', args)).result).toMatchObject({ isError: true })
  })

  test('M7 - arguments that are not an object are -32602', async () => {
    const answer = await ask(host, 'tools/call', { name: 'channel_list', arguments: [] })
    expect([answer.status, rpc(answer).error?.code]).toEqual([200, -32602])
  })

  test('M7 - null for an optional argument is the same as leaving it out, in all revisions', async () => {
    const args = { type: null, pattern: null, limit: null }
    expect(rpc(await callTool(host, 'channel_list', args)).result).toMatchObject({ isError: false })
    expect(rpc(await host.call('channel_list', args)).result).toMatchObject({ isError: false })
    expect(rpc(await callTool(host, 'queue_peek', { channel: 'q', max_messages: null })).result).toMatchObject({
      isError: true,
    })
  })
})

describe('M17 subscriptions/listen', () => {
  test('M17 - it is acknowledged with no notifications, completes, and ends', async () => {
    const params = { notifications: { toolsListChanged: true, promptsListChanged: true } }
    const answer = await ask(host, 'subscriptions/listen', params, { id: 'listen:1' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/event-stream')
    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    const subscription = { 'io.modelcontextprotocol/subscriptionId': 'listen:1' }
    expect(messagesIn(answer.text)).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: {}, _meta: subscription },
      },
      {
        jsonrpc: '2.0',
        id: 'listen:1',
        result: { resultType: 'complete', _meta: { ...SERVER_META, ...subscription } },
      },
    ])
  })

  test('M17 - without an Accept that names event streams it is 406, and a filter is required', async () => {
    const params = { notifications: {} }
    const json = await ask(host, 'subscriptions/listen', params, { headers: { Accept: 'application/json' } })
    expect([json.status, rpc(json).error?.code]).toEqual([406, -32600])
    for (const wrong of [{}, { notifications: null }, { notifications: 'all' }, { notifications: [] }]) {
      const { error } = rpc(await ask(host, 'subscriptions/listen', wrong))
      expect(error, JSON.stringify(wrong)).toMatchObject({
        code: -32602,
        message: expect.stringContaining('notifications must be an object'),
      })
    }
  })
})

describe('M6 progress', () => {
  const RECEIVE = { channel: 'empty', max_messages: 1, wait_timeout_seconds: 1 }

  test('M6 - a call with a progressToken is a stream that proxies do not buffer; one without is JSON', async () => {
    const answer = await callTool(host, 'queue_receive', RECEIVE, { meta: { progressToken: 'p' } })
    expect(answer.headers.get('x-accel-buffering')).toBe('no')
    expect(messagesIn(answer.text)).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 'p' } },
      { id: 1, result: { resultType: 'complete', isError: false } },
    ])
    const plain = await callTool(host, 'queue_receive', RECEIVE)
    expect(plain.headers.get('content-type')).toBe('application/json')
  })
})

describe('M16 trace context', () => {
  const TRACE = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01',
    tracestate: 'vendor=1',
    baggage: 'user=7',
  }
  const HEADERS = { traceparent: '00-1111111111111111aaaaaaaaaaaaaaaa-1111111111111111-01', baggage: 'no=1' }

  const ARGS = { agent_id: 'a', message: 'hi' }

  test('M16 - the members of _meta go to the agent, and replace the headers', async () => {
    const call = (host: McpHost) => callTool(host, 'agent_send', ARGS, { meta: TRACE, headers: HEADERS })
    expect(await forwarded(call)).toEqual([TRACE])
  })

  test('M16 - without them the headers go to the agent', async () => {
    const call = (host: McpHost) => callTool(host, 'agent_send', ARGS, { headers: HEADERS })
    expect(await forwarded(call)).toEqual([{ traceparent: HEADERS.traceparent }])
  })

  test('M16 - members that no header could carry are dropped', async () => {
    const meta = { traceparent: 'x\r\nHost: y', tracestate: 5, baggage: 'a=1\nb: 2' }
    expect(await forwarded((host) => callTool(host, 'agent_send', ARGS, { meta, headers: HEADERS }))).toEqual([{}])
  })

  test('M16 - they go to the agent in the older revisions too', async () => {
    const { params, ...rest } = toolCall('agent_send', ARGS) as { params: object }
    const older = { ...rest, params: { ...params, _meta: TRACE } }
    expect(await forwarded((host) => host.post(older, HEADERS))).toEqual([TRACE])
  })
})
