import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

import { decodeText, encodeText } from '@signalbox/broker-core'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { AgentDirectory } from '../src/index.ts'
import { TestAgentDirectory } from './agent-directory.ts'
import type { McpHost } from './mcp-host.ts'
import { resultText, rpc, startHost, toolCall, waitingReceive } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

const RECEIVE = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
const SESSION = { 'MCP-Session-Id': 'session-1' }

const send = (host: McpHost, body: string): Promise<unknown> => host.user.queues.send('q', { body: encodeText(body) })

const MIB = 1024 * 1024

/** Bytes that are reachable, in the heap and in buffers outside of it. */
function memoryInUse(): number {
  v8.setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** What is in the queue for a receiver that comes now. */
async function waiting(host: McpHost): Promise<readonly string[]> {
  const messages = await host.user.queues.peek('q', { maxMessages: 100 })
  return messages.map(({ body }) => Buffer.from(body).toString())
}

const cancel = (requestId: unknown): string =>
  `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${String(requestId)},"reason":"test"}}`

const withToken = (token: string): string =>
  JSON.stringify(toolCall('queue_receive', RECEIVE)).replace(
    '"arguments"',
    `"_meta":{"progressToken":${token}},"arguments"`,
  )

/** Lists agents whenever the test says so. */
const slowDirectory = (listed: Promise<readonly []>): AgentDirectory => ({
  list: () => listed,
  get: () => Promise.resolve(undefined),
  request: () => Promise.reject(new Error('not used')),
})

describe('M5 disconnects', () => {
  test('M5 - a client that disconnects in the middle of a long poll ends it, and receives no message', async () => {
    const host = await startHost()
    const connection = await RawConnection.open(host.port)
    const call = { name: 'queue_receive', arguments: RECEIVE, _meta: { progressToken: 1 } }
    connection.post(
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
      { Accept: 'text/event-stream' },
    )
    await connection.until('waiting for')
    connection.kill()
    expect(await host.finished(({ tool }) => tool === 'queue_receive')).toMatchObject({ outcome: 'disconnected' })
    await send(host, 'kept')
    expect(await waiting(host)).toEqual(['kept'])
    const [delivery] = await host.user.queues.receive('q', { maxMessages: 1 })
    expect(delivery?.message.receiveCount).toBe(1)
  })

  test('M5 - a query continues when its client disconnects', async () => {
    const host = await startHost()
    const connection = await RawConnection.open(host.port)
    const arrived = Promise.withResolvers<AbortSignal>()
    const answer = Promise.withResolvers<void>()
    const subscription = await host.user.queries.subscribe('ask', {}, async (request) => {
      arrived.resolve(request.signal)
      await answer.promise
      return { executed: true, error: '', body: encodeText('done'), metadata: '', tags: {} }
    })
    onTestFinished(() => subscription.close())
    connection.post('/mcp', toolCall('query_send', { channel: 'ask', body: 'x', timeout_seconds: 60 }))
    const signal = await arrived.promise
    connection.kill()
    await new Promise((resolve) => connection.socket.once('close', resolve))
    // The server has seen the reset when it answers a request that came after it.
    await host.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect(signal.aborted).toBe(false)
    answer.resolve()
    expect(await host.finished(({ tool }) => tool === 'query_send')).toMatchObject({ outcome: 'disconnected' })
  })

  test.each([
    ['command_send', 'commands'],
    ['query_send', 'queries'],
  ] as const)('M5 - what nobody has taken is dropped when its client goes away: %s', async (tool, type) => {
    const host = await startHost()
    const connection = await RawConnection.open(host.port)
    const params = {
      name: tool,
      arguments: { channel: 'ask', body: 'dropped', timeout_seconds: 3600 },
      _meta: { progressToken: 1 },
    }
    connection.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { Accept: 'text/event-stream' })
    await connection.until('waiting for')
    connection.kill()
    expect(await host.finished((event) => event.tool === tool)).toMatchObject({ outcome: 'disconnected' })
    const seen: (string | undefined)[] = []
    const subscription = await host.user[type].subscribe('ask', {}, ({ body }) => {
      seen.push(decodeText(body))
      return {}
    })
    onTestFinished(() => subscription.close())
    await host.call(tool, { channel: 'ask', body: 'delivered' })
    expect(seen).toEqual(['delivered'])
    expect(host.failures).toEqual([])
  })

  test.each([
    ['agent_send', { message: 'dropped' }],
    ['agent_query', { method: 'tasks/get' }],
  ])(
    'M5 - a request that no virtual subscriber took is dropped when its client disconnects: %s',
    async (tool, args) => {
      const directory = Promise.withResolvers<TestAgentDirectory>()
      const agents: AgentDirectory = {
        list: () => Promise.resolve([]),
        get: async (agentId) => (await directory.promise).get(agentId),
        request: async (...request) => (await directory.promise).request(...request),
      }
      const host = await startHost({ agents })
      const card = { agent_id: 'a1', name: 'A' }
      const registered = new TestAgentDirectory(host.system)
      await registered.register(card)
      directory.resolve(registered)
      const connection = await RawConnection.open(host.port)
      const params = { name: tool, arguments: { agent_id: 'a1', ...args }, _meta: { progressToken: 1 } }
      connection.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { Accept: 'text/event-stream' })
      await connection.until('waiting for')
      connection.kill()
      expect(await host.finished((event) => event.tool === tool)).toMatchObject({ outcome: 'disconnected' })
      const seen: string[] = []
      await registered.serve(card, ({ envelope }) => {
        seen.push(envelope)
        return { body: '{"jsonrpc":"2.0","id":1,"result":{}}' }
      })
      await host.call('agent_send', { agent_id: 'a1', message: 'delivered' })
      expect(seen).toEqual([expect.stringContaining('delivered')])
      expect(host.failures).toEqual([])
    },
  )

  test('M5 - a command in flight does not keep its body in memory', async () => {
    const host = await startHost()
    const taken = Promise.withResolvers<void>()
    const subscription = await host.user.commands.subscribe('work', {}, () => {
      taken.resolve()
      return new Promise(() => {})
    })
    onTestFinished(() => subscription.close())
    const megabytes = 8
    const before = memoryInUse()
    const gone = async (): Promise<void> => {
      const connection = await RawConnection.open(host.port)
      const body = 'x'.repeat(megabytes * MIB)
      connection.post('/mcp', toolCall('command_send', { channel: 'work', body, timeout_seconds: 60 }))
      await taken.promise
      connection.kill()
      await new Promise((resolve) => connection.socket.once('close', resolve))
    }
    await gone()
    await host.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
    await expect.poll(() => (memoryInUse() - before) / MIB).toBeLessThan(megabytes / 2)
  })
})

describe('M5 notifications/cancelled', () => {
  test.each([
    ['an integer', '7', '7'],
    ['beyond 2^53', '9007199254740993', '9007199254740993'],
    ['a string written in two ways', '"a"', '"\\u0061"'],
  ])('M5 - a cancelled call ends with 202 and takes no message: id %s', async (_name, id, cancelled) => {
    const host = await startHost()
    const call = JSON.stringify(toolCall('queue_receive', RECEIVE, 0)).replace('"id":0', `"id":${id}`)
    const pending = host.post(call, SESSION)
    const done = pending.then(() => true)
    // Nobody tells when a call without progress has begun to wait; a notification that comes too early does nothing.
    while (!(await Promise.race([done, host.post(cancel(cancelled), SESSION).then(() => false)])));
    const answer = await pending
    expect([answer.status, answer.text]).toEqual([202, ''])
    await send(host, 'kept')
    expect(await waiting(host)).toEqual(['kept'])
    expect(host.requests.find(({ tool }) => tool === 'queue_receive')).toMatchObject({ outcome: 'cancelled' })
  })

  test('M5 - a cancelled call with progress ends without an answer', async () => {
    const host = await startHost()
    const { answer } = await waitingReceive(host, { id: 7, headers: SESSION })
    await host.post(cancel('7'), SESSION)
    expect(await answer).toBeUndefined()
    await send(host, 'kept')
    expect(await waiting(host)).toEqual(['kept'])
  })

  test('M5 - only the same caller, session and id is cancelled', async () => {
    const host = await startHost({
      authenticator: { authenticate: ({ headers }) => ({ clientId: String(headers['x-client'] ?? 'a') }) },
    })
    const { answer } = await waitingReceive(host, { id: 9_007_199_254_740_992, headers: SESSION })
    await host.post(cancel('9007199254740993'), SESSION)
    await host.post(cancel('"9007199254740992"'), SESSION)
    await host.post(cancel('9007199254740992'), { 'MCP-Session-Id': 'session-2' })
    await host.post(cancel('9007199254740992'))
    await host.post(cancel('9007199254740992'), { ...SESSION, 'X-Client': 'b' })
    await send(host, 'for the one who waits')
    expect(resultText(await answer)).toContain('for the one who waits')
  })

  test('M5 - without a session a caller cannot cancel by an id alone', async () => {
    const host = await startHost()
    const { answer } = await waitingReceive(host, { id: 7 })
    await host.post(cancel('7'))
    await send(host, 'still there')
    expect(resultText(await answer)).toContain('still there')
  })
})

describe('M6 progress', () => {
  test.each(['"t-1"', '9007199254740993'])(
    'M6 - a waiting call tells of its progress over SSE, token %s',
    async (token) => {
      const host = await startHost()
      const response = await fetch(host.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...SESSION },
        body: withToken(token),
      })
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe('text/event-stream')
      expect(response.headers.get('mcp-session-id')).toBe('session-1')
      await send(host, 'hello')
      const text = await response.text()
      const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data)
      expect(events.length).toBeGreaterThanOrEqual(2)
      expect(events[0]).toContain(`"method":"notifications/progress","params":{"progressToken":${token},"progress":`)
      expect(events.at(-1)).toMatch(/^\{"jsonrpc":"2\.0","id":1,"result":/)
      expect(events.at(-1)).toContain('hello')
      expect(text).not.toContain('\ndata: \n')
    },
  )

  test('M6 - a client that does not read event streams gets one JSON answer, token or not', async () => {
    const host = await startHost()
    await send(host, 'hello')
    const answer = await host.post(withToken('"t"'), { Accept: 'application/json' })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(resultText(answer)).toContain('hello')
  })
})

describe('M13 tool timeout', () => {
  test('M13 - a tool without its own timeout is bounded, and its late result is dropped', async () => {
    const listed = Promise.withResolvers<readonly []>()
    const host = await startHost({ agents: slowDirectory(listed.promise), toolTimeoutSeconds: 0.05 })
    const answer = await host.call('agent_list', {})
    expect(answer.status).toBe(200)
    expect(rpc(answer).result).toMatchObject({ isError: true })
    expect(resultText(answer)).toContain('did not finish within 0.05 s')
    listed.resolve([])
    expect((await host.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).status).toBe(200)
    expect(host.failures).toEqual([])
  })

  test('M13 - a wait of a tool’s own is not bounded by it', async () => {
    const host = await startHost({ toolTimeoutSeconds: 0.01 })
    const pending = host.call('queue_receive', { channel: 'q', max_messages: 1, wait_timeout_seconds: 1 })
    expect(resultText(await pending)).toBe('[]')
  })

  test('M13 - calls at the same time have separate time-outs', async () => {
    const listed = Promise.withResolvers<readonly []>()
    const host = await startHost({ agents: slowDirectory(listed.promise), toolTimeoutSeconds: 0.5 })
    const answers = await Promise.all([
      host.call('agent_list', {}),
      host.call('agent_list', {}),
      host.call('agent_list', {}),
    ])
    for (const answer of answers) expect(resultText(answer)).toContain('did not finish')
    expect(resultText(await host.call('channel_list', {}))).toBe('[]')
    const again = host.call('agent_list', {})
    expect(resultText(await again)).toContain('did not finish')
  })

  test('RPC-8 - a tool that breaks is an internal error without its inside', async () => {
    const broken = Promise.withResolvers<readonly []>()
    broken.promise.catch(() => {})
    broken.reject(new Error('secret detail'))
    const host = await startHost({ agents: slowDirectory(broken.promise) })
    expect(rpc(await host.call('agent_list', {}))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32603, message: 'internal error' },
    })
    expect(host.failures).toMatchObject([{ message: 'secret detail' }])
  })
})
