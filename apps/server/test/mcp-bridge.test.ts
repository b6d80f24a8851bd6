import { join } from 'node:path'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { freePort } from '@signalbox/testkit/free-port'
import { eventually } from '@signalbox/testkit/until'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { testServer } from '@signalbox/testkit/test-server'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { BridgeHost } from './support/bridge-host.ts'
import { bridgeTo } from './support/bridge-host.ts'
import { APP, INHERITED, runCli } from './support/cli.ts'
import { command } from './support/commands.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

/** The command that a host starts. */
function program(url: string, token?: string) {
  return {
    command: process.execPath,
    args: ['--conditions=@signalbox/source', join(APP, 'scripts/start.js'), 'mcp', '--url', url],
    env: { ...INHERITED, ...(token === undefined ? {} : { SIGNALBOX_TOKEN: token }) },
    stderr: 'ignore' as const,
  }
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** The two kinds of revision: how a host opens, and what every message of it carries. */
const ERAS = [
  { era: '2025-11-25', meta: {}, initializes: true },
  { era: '2026-07-28', meta: META, initializes: false },
] as const

function request(id: unknown, method: string, params: object, meta: object = {}): object {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }
}

async function initialize(host: BridgeHost): Promise<void> {
  const clientInfo = { name: 'test', version: '1' }
  host.send(request('start', 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }))
  await host.received(({ id }) => id === 'start')
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
}

/** Returns the number of calls that the server ended because their client cancelled them or went away. */
async function abandoned(api: string): Promise<number> {
  const metrics = await (await fetch(`${api}/metrics`)).text()
  const counts = [
    ...metrics.matchAll(/^broker_request_duration_seconds_count\{[^}]*(?:cancelled|disconnected)[^}]*\} (\d+)$/gm),
  ]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

describe('bridge - official clients', () => {
  test.each([
    ['2025-11-25', 'legacy'],
    ['2026-07-28', 'auto'],
    ['2026-07-28', { pin: '2026-07-28' }],
  ] as const)('M26 - the second SDK reaches the server with %s (%j)', async (version, mode) => {
    const { http } = await serve()
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
    onTestFinished(() => client.close())
    await client.connect(new StdioClientTransport(program(http.url)))
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getServerVersion()?.name).toBe('signalbox')
    expect((await client.listTools()).tools).toHaveLength(TOOL_NAMES.length)
    const sent = await client.callTool({ name: 'queue_send', arguments: { channel: 'q', body: 'hello\nwörld' } })
    expect(sent).toMatchObject({ isError: false, structuredContent: { channel: 'q' } })
    const received = await client.callTool({ name: 'queue_receive', arguments: { channel: 'q', max_messages: 1 } })
    expect(received.structuredContent).toEqual({ messages: [{ body: 'hello\nwörld', metadata: '', tags: {} }] })
  })

  test('M26 - the first SDK reaches the server, with a token from the environment', async () => {
    const keys = issuer()
    const { http } = await serve(trusting(keys))
    const token = (await keys.bearer('model')).replace('Bearer ', '')
    const client = new FirstClient({ name: 'test', version: '1.0.0' })
    onTestFinished(() => client.close())
    await client.connect(new FirstTransport(program(`${http.url}/mcp`, token)))
    expect(await client.callTool({ name: 'queue_send', arguments: { channel: 'q', body: 'x' } })).toMatchObject({
      isError: false,
    })
  })

  test('M26 - a client that aborts a call leaves the message in the queue', async () => {
    const { http, api } = await serve()
    for (const mode of ['legacy', 'auto'] as const) {
      const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
      onTestFinished(() => client.close())
      await client.connect(new StdioClientTransport(program(http.url)))
      const abort = new AbortController()
      const args = { channel: mode, max_messages: 1, wait_timeout_seconds: 60 }
      const call = client.callTool(
        { name: 'queue_receive', arguments: args },
        { signal: abort.signal, onprogress: () => abort.abort() },
      )
      await expect(call).rejects.toThrow(/abort/i)
      await eventually(async () => expect(await abandoned(api.url)).toBe(mode === 'legacy' ? 1 : 2))
      await callTool(http.url, 'queue_send', { channel: mode, body: 'kept' })
      await eventually(async () => {
        const peeked = await callTool(http.url, 'queue_peek', { channel: mode, max_messages: 1 })
        expect(peeked.structured).toEqual({ messages: [expect.objectContaining({ body: 'kept' })] })
      })
    }
  })
})

describe.each(ERAS)('bridge - messages of $era', ({ meta, initializes }) => {
  async function open(): Promise<{ readonly host: BridgeHost; readonly url: string; readonly api: string }> {
    const { http, api } = await serve()
    const host = bridgeTo(`${http.url}/mcp`)
    if (initializes) await initialize(host)
    return { host, url: http.url, api: api.url }
  }

  test('M26 - calls run at the same time, and each answer has its id', async () => {
    const { host, url } = await open()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    host.send(request(1, 'tools/call', { name: 'queue_receive', arguments: args }, meta))
    host.send(request('two', 'tools/call', { name: 'channel_list', arguments: {} }, meta))
    await host.received(({ id }) => id === 'two')
    await callTool(url, 'queue_send', { channel: 'q', body: 'x' })
    const { result } = await host.received(({ id }) => id === 1)
    expect(result?.content?.[0]?.text).toContain('"body":"x"')
  })

  test('M26 - progress reaches the host before the answer', async () => {
    const { host, url } = await open()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    host.send(request(1, 'tools/call', { name: 'queue_receive', arguments: args }, { ...meta, progressToken: 'p' }))
    const { params } = await host.received(({ method }) => method === 'notifications/progress')
    expect(params?.message).toContain('waiting for')
    await callTool(url, 'queue_send', { channel: 'q', body: 'x' })
    await host.received(({ id }) => id === 1)
  })

  test('M26 - notifications/cancelled ends the call, without an answer', async () => {
    const { host, api } = await open()
    const args = { channel: 'work', body: 'x', timeout_seconds: 60 }
    host.send(request(7, 'tools/call', { name: 'command_send', arguments: args }, { ...meta, progressToken: 'p' }))
    await host.received(({ method }) => method === 'notifications/progress')
    host.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7, _meta: meta } })
    await eventually(async () => expect(await abandoned(api)).toBe(1))
    host.send(request(8, 'tools/list', {}, meta))
    await host.received(({ id }) => id === 8)
    expect(host.lines.filter((line) => (JSON.parse(line) as { id?: unknown }).id === 7)).toEqual([])
  })

  test('M26 - a name that a header cannot carry arrives unchanged', async () => {
    const { host } = await open()
    for (const name of ['größe', ' blank ', '=?base64?eA==?=', 'a\nb']) {
      host.send(request(name, 'tools/call', { name, arguments: {} }, meta))
      const { error } = await host.received(({ id }) => id === name)
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('unknown tool') as string })
    }
  })

  test('M26 - the errors of the server pass unchanged, whatever their HTTP status', async () => {
    const { host } = await open()
    host.send(request(1, 'nonsense', {}, meta))
    expect((await host.received(({ id }) => id === 1)).error?.code).toBe(-32601)
  })
})

describe('bridge - failures', () => {
  test('M26 - a server that does not run: an error for each request, and the bridge stays', async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`
    const host = bridgeTo(url)
    for (const id of [1, 'two']) {
      host.send(request(id, 'tools/list', {}))
      const { error } = await host.received((message) => message.id === id)
      expect(error).toEqual({
        code: -32603,
        message: `cannot reach ${url} (ECONNREFUSED): start the server, or correct the URL`,
      })
    }
    host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await eventually(() => expect(host.log).toHaveLength(3))
    expect(host.lines).toHaveLength(2)
  })

  test('M26 - a line that is not JSON is answered, and the next one is read', async () => {
    const { http } = await serve()
    const host = bridgeTo(`${http.url}/mcp`)
    host.send('{"jsonrpc":')
    host.send('')
    host.send(request(1, 'ping', {}))
    await host.received(({ id }) => id === 1)
    expect((await host.received(({ id }) => id === null)).error?.code).toBe(-32700)
  })

  test('M26 - without a valid token the request has an error, and the log names the variable', async () => {
    const { http } = await serve(trusting(issuer()))
    for (const meta of [{}, META]) {
      const host = bridgeTo(`${http.url}/mcp`, 'wrong')
      host.send(request('x', 'tools/list', {}, meta))
      const { error } = await host.received(({ id }) => id === 'x')
      expect(error?.code).toBe(-32010)
      expect(error?.message).toMatch(
        /^the server (?:requires a|refuses the) token \(.+\): set SIGNALBOX_TOKEN, or Token in/,
      )
      // Only 2026-07-28 has an HTTP status for it.
      expect(host.log.join().includes('SIGNALBOX_TOKEN')).toBe(meta === META)
    }
  })

  test('M26 - a page of a proxy, and an answer that breaks off, are errors of the request', async () => {
    const server = await testServer((incoming, answer) => {
      if (incoming.url === '/page') answer.writeHead(502).end('<html>bad gateway</html>')
      else {
        // With all of the request read, the connection ends without a reset.
        incoming.resume().once('end', () => {
          answer.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"jsonrpc"')
          setImmediate(() => answer.destroy())
        })
      }
    })
    const base = server.url
    for (const [path, text] of [
      ['/page', `HTTP 502 from ${base}/page`],
      ['/broken', `no complete answer from ${base}/broken (aborted): the server may have executed the call`],
    ] as const) {
      const host = bridgeTo(`${base}${path}`)
      host.send(request(1, 'ping', {}))
      expect((await host.received(({ id }) => id === 1)).error).toEqual({ code: -32603, message: text })
    }
  })

  test('M26 - a host that ends its input ends the bridge and its waiting calls', async () => {
    const { http } = await serve()
    const host = bridgeTo(`${http.url}/mcp`)
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    host.send(request(1, 'tools/call', { name: 'queue_receive', arguments: args }, { progressToken: 'p' }))
    await host.received(({ method }) => method === 'notifications/progress')
    host.input.end()
    await host.ended
    await callTool(http.url, 'queue_send', { channel: 'q', body: 'kept' })
    await eventually(async () => {
      const { structured } = await callTool(http.url, 'queue_peek', { channel: 'q', max_messages: 1 })
      expect(structured['messages']).toHaveLength(1)
    })
  })

  test('M26 - an answer that the host did not read returns its messages to the queue', async () => {
    const { http } = await serve({ settleGraceMs: 10_000 })
    const host = bridgeTo(`${http.url}/mcp`)
    await callTool(http.url, 'queue_send', { channel: 'q', body: 'kept' })
    host.send(request(1, 'tools/call', { name: 'queue_receive', arguments: { channel: 'q', max_messages: 1 } }))
    await host.received(({ id }) => id === 1)
    host.output.destroy(new Error('EPIPE'))
    await host.ended
    const receive = { channel: 'q', max_messages: 1, wait_timeout_seconds: 20 }
    const again = await callTool(http.url, 'queue_receive', receive)
    expect(again.structured['messages']).toEqual([expect.objectContaining({ body: 'kept' })])
  })
})

describe('bridge - command line', () => {
  test.each([
    [['--url', 'nonsense'], '--url: "nonsense"; allowed is an http or https URL without credentials'],
    [['--url', 'ftp://a'], '--url: "ftp://a"; allowed is'],
    [['--url', 'http://u:p@a'], '--url: "http://u:p@a"; allowed is'],
    [['extra'], '"extra": not an option'],
    [['--token', 'x'], '--token: unknown; allowed are --url'],
  ])('M26 - mcp %j is refused', async (args, problem) => {
    const { code, stdout, stderr } = await command(['mcp', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`signalbox: mcp: ${problem}`)
  })

  test('M26 - with no input it exits with 0, and writes nothing to stdout', async () => {
    const { code, stdout, stderr } = await runCli({ args: ['mcp', '--url', 'http://127.0.0.1:1'] })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toBe('signalbox mcp: forwards messages to http://127.0.0.1:1/mcp\n')
  })
})
