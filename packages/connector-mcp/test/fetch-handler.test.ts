import { createServer } from 'node:http'

import { onTestFinished, expect, test } from 'vitest'

import type { McpFetchHandler } from '../src/index.ts'
import { createMcpFetchHandler, mcpConnector } from '../src/index.ts'
import { startHost, toolCall } from './mcp-host.ts'

const STATELESS = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'server/discover',
}

async function openHandler(): Promise<McpFetchHandler> {
  const { broker } = await startHost()
  const mcp = createMcpFetchHandler(broker, { drainMs: 0 })
  onTestFinished(() => mcp.close())
  return mcp
}

function post(message: object, headers: Record<string, string> = {}, signal?: AbortSignal): Request {
  return new Request('http://localhost/mcp', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(message),
    ...(signal === undefined ? {} : { signal }),
  })
}

test('fetch handler - answers both eras of the protocol', async () => {
  const mcp = await openHandler()
  const legacy = await mcp(post({ jsonrpc: '2.0', id: 1, method: 'ping' }))
  expect(await legacy.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  const discover = {
    jsonrpc: '2.0',
    id: 2,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }
  const stateless = await mcp(post(discover, STATELESS))
  expect(stateless.headers.get('mcp-protocol-version')).toBe('2026-07-28')
  expect(await stateless.json()).toMatchObject({ id: 2, result: { resultType: 'complete' } })
})

test('fetch handler - checks the Origin', async () => {
  const mcp = await openHandler()
  const { status } = await mcp(post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { Origin: 'https://evil.example' }))
  expect(status).toBe(403)
})

test('fetch handler - takes a message that the host has parsed', async () => {
  const mcp = await openHandler()
  const request = post({ jsonrpc: '2.0', id: 7, method: 'ping' })
  const response = await mcp(request, { body: await request.json() })
  expect(await response.json()).toMatchObject({ id: 7 })
})

test('fetch handler - a GET stream is open until the host cancels it, or the handler closes', async () => {
  const mcp = await openHandler()
  const listen = (): Promise<Response> =>
    mcp(new Request('http://localhost/mcp', { headers: { Accept: 'text/event-stream' } }))
  const first = await listen()
  const second = await listen()
  expect(mcp.openStreams()).toBe(2)
  await first.body?.cancel()
  await expect.poll(() => mcp.openStreams()).toBe(1)
  const rest = second.text()
  await mcp.close()
  expect(await rest).toContain(': open')
  expect(mcp.openStreams()).toBe(0)
})

test('fetch handler - messages of an answer that the host drops are redelivered', async () => {
  const { broker, user } = await startHost()
  await using mcp = createMcpFetchHandler(broker)
  await user.queues.send('q', { body: Buffer.from('kept') })
  const receive = toolCall('queue_receive', { channel: 'q', max_messages: 1 })
  const response = await mcp(post(receive))
  await response.body?.cancel()
  const again = toolCall('queue_receive', { channel: 'q', max_messages: 1, wait_timeout_seconds: 20 })
  expect(await (await mcp(post(again))).text()).toContain('kept')
})

test('handler - a host without sockets is refused with words', async () => {
  const { broker } = await startHost()
  await using connector = mcpConnector(broker)
  for (const args of [[], [post({})], [{ headers: {} }, {}], [createServer(), null]]) {
    expect(() => void Reflect.apply(connector.handler, undefined, args)).toThrow('takes a request of node:http')
  }
})
