import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js'
import { decodeText } from '@signalbox/broker-core'
import type { FastifyInstance } from 'fastify'
import { fastify } from 'fastify'
import { CORE_TOOL_NAMES, TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { mcpConnector } from '../src/fastify.ts'
import type { McpRequestEvent } from '../src/index.ts'
import type { TestAgentDirectory } from './agent-directory.ts'
import { echoDirectory } from './agent-directory.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

/** The official client over real HTTP; it checks structured content against the output schemas itself. */
let bench: ToolBench
let app: FastifyInstance
let address: string
let client: Client
/** The finished requests to the server with agents. */
const finished: McpRequestEvent[] = []

beforeAll(async () => {
  let directory: TestAgentDirectory | undefined
  bench = await openToolBench(async (system) => (directory = await echoDirectory(system)))
  app = fastify({ forceCloseConnections: true })
  await app.register(mcpConnector(bench.broker).plugin, { prefix: '/plain' })
  const hooks = { requestFinished: (event: McpRequestEvent) => void finished.push(event) }
  await app.register(mcpConnector(bench.broker, { ...(directory ? { agents: directory } : {}), hooks }).plugin)
  address = await app.listen({ host: '127.0.0.1', port: 0 })
  client = await connect('/mcp')
})

afterAll(async () => {
  await client.close()
  await app.close()
  await bench[Symbol.asyncDispose]()
})

async function connect(path: string): Promise<Client> {
  const made = new Client({ name: 'tools-client-test', version: '1.0.0' })
  await made.connect(new StreamableHTTPClientTransport(new URL(path, address)))
  // The client checks results of the tools it has listed.
  await made.listTools()
  return made
}

async function call(name: string, args: Record<string, unknown>): Promise<CallToolResult> {
  return (await client.callTool({ name, arguments: args })) as CallToolResult
}

function textOf({ content }: CallToolResult): string {
  for (const block of content) expect(block).toEqual({ type: 'text', text: expect.any(String) })
  return (content[0] as { text: string }).text
}

async function success(name: string, args: Record<string, unknown>): Promise<string> {
  const result = await call(name, args)
  expect(result.isError, textOf(result)).toBe(false)
  return textOf(result)
}

async function json(name: string, args: Record<string, unknown>): Promise<unknown> {
  return JSON.parse(await success(name, args))
}

describe('tools - over HTTP with the official client', () => {
  test('MCP-1, MCP-7, MCP-8 - lists the core tools, and with an agent directory those of agents', async () => {
    const plain = await connect('/plain/mcp')
    const { tools: core } = await plain.listTools()
    const { tools } = await client.listTools()
    await plain.close()
    expect(core.map(({ name }) => name)).toEqual(CORE_TOOL_NAMES)
    expect(tools.map(({ name }) => name)).toEqual(TOOL_NAMES)
    for (const tool of tools) expect(bench.tools.get(tool.name)!.definition).toEqual(tool)
  })

  test('TOOL-1, TOOL-6, TOOL-10 - queue_send, queue_peek, queue_receive', async () => {
    const message = { body: 'née 🦊\n', metadata: 'm', tags: { k: 'v' } }
    expect(await success('queue_send', { channel: 'http.work', ...message })).toContain('http.work')
    expect(await json('queue_peek', { channel: 'http.work', max_messages: 10 })).toEqual([message])
    expect(await json('queue_receive', { channel: 'http.work', max_messages: 10 })).toEqual([message])
    const args = { channel: 'http.work', max_messages: 10, wait_timeout_seconds: 1 }
    expect(await json('queue_receive', args)).toEqual([])
    await expect
      .poll(async () => (await bench.engine.channels.info('queues', 'http.work'))?.queue)
      .toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('TOOL-7 - a long poll in one client is answered by a send from another', async () => {
    const other = await connect('/mcp')
    const waiting = json('queue_receive', { channel: 'http.poll', max_messages: 1, wait_timeout_seconds: 60 })
    await other.callTool({ name: 'queue_send', arguments: { channel: 'http.poll', body: 'here' } })
    expect(await waiting).toMatchObject([{ body: 'here' }])
    await other.close()
  })

  test('TOOL-12 - events_publish', async () => {
    const arrived = Promise.withResolvers<string | undefined>()
    await bench.user.events.subscribe('http.>', {}, ({ body }) => arrived.resolve(decodeText(body)))
    expect(await success('events_publish', { channel: 'http.news', body: 'hello' })).toContain('http.news')
    expect(await arrived.promise).toBe('hello')
  })

  test('TOOL-13, TOOL-16, TOOL-17 - events_store_publish, events_store_read, events_store_read_latest', async () => {
    for (const body of ['a', 'b', 'c']) {
      expect(await success('events_store_publish', { channel: 'http.log', body })).toContain('http.log')
    }
    const all = (await json('events_store_read', { channel: 'http.log', max_messages: 10 })) as { timestamp: string }[]
    expect(all).toMatchObject([
      { body: 'a', sequence: 1 },
      { body: 'b', sequence: 2 },
      { body: 'c', sequence: 3 },
    ])
    const from_time = all[0]!.timestamp
    expect(await json('events_store_read', { channel: 'http.log', from_time, max_messages: 10 })).toEqual(all)
    expect(await json('events_store_read', { channel: 'http.log', from_sequence: 3, max_messages: 10 })).toEqual([
      all[2],
    ])
    expect(await json('events_store_read_latest', { channel: 'http.log', count: 2 })).toEqual([all[2], all[1]])
  })

  test('TOOL-18, TOOL-20 - command_send and query_send, answered by a subscriber in this process', async () => {
    const handle = bench.broker.as({ clientId: 'subscriber' })
    const done: (string | undefined)[] = []
    await handle.commands.subscribe('http.door', {}, ({ body }) => {
      done.push(decodeText(body))
      return {}
    })
    await handle.queries.subscribe('http.echo', {}, ({ body }) => ({ body }))
    expect(await success('command_send', { channel: 'http.door', body: 'open' })).toContain('http.door')
    expect(done).toEqual(['open'])
    expect(await success('query_send', { channel: 'http.echo', body: '{"a": 1}' })).toBe('{"a": 1}')
  })

  test('TOOL-22, TOOL-23 - channel_list and channel_info', async () => {
    await success('queue_send', { channel: 'http.info', body: 'x' })
    expect(await json('channel_list', { type: 'queues', pattern: 'http.i' })).toEqual([
      { name: 'http.info', type: 'queues', is_active: true },
    ])
    expect(await json('channel_info', { channel: 'http.info', type: 'queues' })).toEqual({
      name: 'http.info',
      type: 'queues',
      is_active: true,
      incoming: 1,
      outgoing: 0,
    })
  })

  test('TOOL-24, TOOL-25, TOOL-26, TOOL-27 - the agent tools', async () => {
    expect(await json('agent_list', {})).toEqual([{ agent_id: 'echo', name: 'Echo', skills: [] }])
    expect(await json('agent_info', { agent_id: 'echo' })).toMatchObject({ agent_id: 'echo' })
    expect(await json('agent_send', { agent_id: 'echo', message: 'hi' })).toMatchObject({ method: 'message/send' })
    expect(await json('agent_query', { agent_id: 'echo', method: 'tasks/get' })).toMatchObject({ method: 'tasks/get' })
    expect(await success('agent_send', { agent_id: 'echo', message: 'hi', blocking: false })).toContain('accepted')
  })

  test('MCP-3, MCP-4, MCP-6, M8 - failures of tools are results', async () => {
    const failures: [string, Record<string, unknown>, RegExp][] = [
      ['queue_send', { channel: '_AGENTS_.x', body: '' }, /^CHANNEL_RESERVED/],
      ['queue_peek', { channel: '_AGENTS_.x', max_messages: 1 }, /^CHANNEL_RESERVED/],
      ['channel_info', { channel: 'none', type: 'queries' }, /^CHANNEL_NOT_FOUND/],
      ['command_send', { channel: 'none', body: '', timeout_seconds: 1 }, /^NO_SUBSCRIBER/],
      ['agent_info', { agent_id: 'none' }, /^AGENT_NOT_FOUND/],
    ]
    for (const [name, args, expected] of failures) {
      const result = await call(name, args)
      expect(result.isError).toBe(true)
      expect(textOf(result)).toMatch(expected)
    }
  })

  test('MCP-5, M7 - wrong arguments are JSON-RPC errors', async () => {
    await expect(call('queue_receive', { channel: 'c' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('max_messages is missing'),
      data: { problems: [{ argument: 'max_messages', allowed: 'a whole number from 1 to 100' }] },
    })
    await expect(call('no_such_tool', {})).rejects.toMatchObject({ code: -32602 })
  })

  test('M6 - a client that asks for progress gets the reason of the wait', async () => {
    const progress: Progress[] = []
    const waiting = client.callTool(
      { name: 'queue_receive', arguments: { channel: 'http.progress', max_messages: 1, wait_timeout_seconds: 60 } },
      undefined,
      { onprogress: (step) => void progress.push(step) },
    )
    await expect.poll(() => progress).toMatchObject([{ message: 'waiting for a message in queue "http.progress"' }])
    await bench.call('queue_send', { channel: 'http.progress', body: 'here' })
    expect(await waiting).toMatchObject({ structuredContent: { messages: [{ body: 'here' }] } })
  })

  test('M5 - cancelling a long poll takes nothing', async () => {
    const controller = new AbortController()
    const args = { channel: 'http.cancel', max_messages: 1, wait_timeout_seconds: 60 }
    const progress = Promise.withResolvers<unknown>()
    const waiting = client.callTool({ name: 'queue_receive', arguments: args }, undefined, {
      signal: controller.signal,
      onprogress: progress.resolve,
    })
    await progress.promise
    controller.abort('enough')
    await expect(waiting).rejects.toThrow('enough')
    // The client does not wait for the answer to its notification.
    await expect.poll(() => finished.filter(({ outcome }) => outcome === 'cancelled')).toHaveLength(1)
    await success('queue_send', { channel: 'http.cancel', body: 'kept' })
    expect(await json('queue_receive', args)).toMatchObject([{ body: 'kept' }])
  })
})
