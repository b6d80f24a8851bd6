import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js'
import { encodeText } from '@signalbox/broker-core'
import { CORE_TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { McpHost } from './mcp-host.ts'
import { HOST_KINDS } from './mcp-host.ts'
import { startHost } from './mcp-host.ts'

async function connectTo(host: McpHost): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(host.url))
  await client.connect(transport)
  onTestFinished(() => client.close())
  return client
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
): Promise<{ text: string; isError: boolean }> {
  const result = (await client.callTool({ name, arguments: args })) as CallToolResult
  const [block] = result.content
  if (block?.type !== 'text') throw new Error('not a text block')
  return { text: block.text, isError: result.isError === true }
}

describe.each(HOST_KINDS)('official client on %s', (kind) => {
  test('official client - initialize, ping and tools/list', async () => {
    const host = await startHost({}, kind)
    const client = await connectTo(host)
    expect(client.getServerVersion()).toMatchObject({ name: 'signalbox' })
    expect(client.getServerCapabilities()).toEqual({ tools: {} })
    expect(client.getInstructions()).toContain('message broker')
    await client.ping()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(CORE_TOOL_NAMES)
    // The client opens its GET stream after initialize.
    await expect.poll(() => host.connector.openStreams()).toBe(1)
  })

  test('official client - drives the core tools', async () => {
    const host = await startHost({}, kind)
    const client = await connectTo(host)
    await client.listTools()
    const events: string[] = []
    const heard = Promise.withResolvers<void>()
    await host.user.events.subscribe('news', {}, ({ body }) => {
      events.push(Buffer.from(body).toString())
      heard.resolve()
    })
    await host.user.commands.subscribe('do', {}, async ({ body }) => ({
      executed: Buffer.from(body).toString() === 'yes',
      error: Buffer.from(body).toString() === 'yes' ? '' : 'I will not',
      body: new Uint8Array(),
      metadata: '',
      tags: {},
    }))
    await host.user.queries.subscribe('ask', {}, async ({ body }) => ({
      executed: true,
      error: '',
      body: encodeText(`re: ${Buffer.from(body).toString()}`),
      metadata: '',
      tags: {},
    }))

    expect(await call(client, 'queue_send', { channel: 'q', body: 'm1', tags: { a: 'b' } })).toMatchObject({
      isError: false,
    })
    expect(JSON.parse((await call(client, 'queue_peek', { channel: 'q', max_messages: 5 })).text)).toEqual([
      { body: 'm1', metadata: '', tags: { a: 'b' } },
    ])
    expect(JSON.parse((await call(client, 'queue_receive', { channel: 'q', max_messages: 5 })).text)).toMatchObject([
      { body: 'm1' },
    ])
    expect((await call(client, 'events_publish', { channel: 'news', body: 'e1' })).isError).toBe(false)
    await heard.promise
    expect(events).toEqual(['e1'])
    for (const body of ['s1', 's2']) await call(client, 'events_store_publish', { channel: 'log', body })
    const read = await call(client, 'events_store_read', { channel: 'log', from_sequence: 1, max_messages: 10 })
    expect(JSON.parse(read.text)).toMatchObject([
      { body: 's1', sequence: 1 },
      { body: 's2', sequence: 2 },
    ])
    const latest = await call(client, 'events_store_read_latest', { channel: 'log' })
    expect(JSON.parse(latest.text)).toMatchObject([{ body: 's2', sequence: 2 }])
    expect((await call(client, 'command_send', { channel: 'do', body: 'yes' })).isError).toBe(false)
    const rejected = await call(client, 'command_send', { channel: 'do', body: 'no' })
    expect(rejected.isError).toBe(true)
    expect(rejected.text).toContain('I will not')
    expect((await call(client, 'query_send', { channel: 'ask', body: 'hi' })).text).toBe('re: hi')
    const channels: { name: string; type: string }[] = JSON.parse((await call(client, 'channel_list', {})).text)
    expect(channels.map(({ name, type }) => `${type}/${name}`).toSorted()).toEqual([
      'commands/do',
      'events/news',
      'events_store/log',
      'queries/ask',
      'queues/q',
    ])
    const info = await call(client, 'channel_info', { channel: 'log', type: 'events_store' })
    expect(JSON.parse(info.text)).toMatchObject({ name: 'log', incoming: 2 })
    expect(host.failures).toEqual([])
  })

  test('official client - progress while a receive waits, then the message', async () => {
    const host = await startHost({}, kind)
    const client = await connectTo(host)
    const told = Promise.withResolvers<Progress>()
    const pending = client.callTool(
      { name: 'queue_receive', arguments: { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 } },
      undefined,
      { onprogress: told.resolve },
    )
    expect((await told.promise).message).toContain('waiting for')
    await host.user.queues.send('q', { body: encodeText('late') })
    expect(JSON.stringify(await pending)).toContain('late')
    await expect
      .poll(async () => (await host.user.channels.info('queues', 'q')).queue)
      .toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('official client - a call it cancels takes no message', async () => {
    const host = await startHost({}, kind)
    const client = await connectTo(host)
    const abort = new AbortController()
    const told = Promise.withResolvers<unknown>()
    const pending = client.callTool(
      { name: 'queue_receive', arguments: { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 } },
      undefined,
      { signal: abort.signal, onprogress: told.resolve },
    )
    await told.promise
    abort.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    await host.finished(({ tool, outcome }) => tool === 'queue_receive' && outcome === 'cancelled')
    await host.user.queues.send('q', { body: encodeText('kept') })
    expect(await host.user.queues.peek('q', { maxMessages: 5 })).toHaveLength(1)
  })

  test('official client - it can end its session and another goes on', async () => {
    const host = await startHost({}, kind)
    const first = await connectTo(host)
    const second = await connectTo(host)
    await (first.transport as StreamableHTTPClientTransport).terminateSession()
    await second.ping()
    expect(host.requests.some(({ method }) => method === 'DELETE')).toBe(true)
  })
})
