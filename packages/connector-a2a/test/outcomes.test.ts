import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import { AgentAddressPolicy } from '@signalbox/registry'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { agentAnswer } from '../src/gateway/call-protocol.ts'
import type { AgentReply } from '../src/requests/agent-reply.ts'
import type { Script, ScriptedAgent } from './agents.ts'
import { always, echo, hang, json, result, startAgent } from './agents.ts'
import type { GatewayHost, HostOptions, RpcAnswer } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'

const LIMIT = 10_000

interface Bench {
  readonly host: GatewayHost
  readonly agent: ScriptedAgent
  /** What the caller is told, and what the virtual subscriber replied. */
  readonly outcome: (script: Script) => Promise<{ readonly answer: RpcAnswer; readonly reply: AgentReply }>
}

async function openBench(options: HostOptions = {}): Promise<Bench> {
  const host = await openGateway({ agentMaxResponseBytes: LIMIT, ...options })
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  return {
    host,
    agent,
    async outcome(script) {
      agent.script = script
      const answer = await host.call('agent-1')
      const caller = { clientId: 'test' }
      const reply = await host.requests.request('agent-1', Buffer.from(messageSend()), { caller })
      return { answer, reply }
    },
  }
}

const failed = (code: number, message: string | RegExp, data?: unknown): object => ({
  jsonrpc: '2.0',
  id: 1,
  error: {
    code,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
    ...(data === undefined ? {} : { data }),
  },
})

test('OUT-1, A3 - outcome: no server listens at the url, or its name does not resolve', async () => {
  const { host, outcome, agent } = await openBench()
  await agent.close()
  const refused = await outcome(echo)
  expect(refused.answer).toEqual(failed(-32003, 'agent unreachable: connection refused'))
  expect(refused.reply).toMatchObject({
    executed: false,
    error: 'agent unreachable: connection refused',
    failure: 'unreachable',
  })
  await host.register('nowhere', 'http://nowhere.invalid/')
  expect(await host.call('nowhere')).toEqual(failed(-32003, 'agent unreachable: host not found'))
  expect(host.failures).toEqual([])
})

test('OUT-1, A3, A15 - outcome: a connection that is reset or closed before a response, and one that is no HTTP', async () => {
  const { host, outcome, agent } = await openBench()
  const closed = failed(-32003, 'agent unreachable: the connection was closed before a response came')
  const reset = await outcome(({ socket }) => socket.resetAndDestroy())
  expect(reset.answer).toEqual(closed)
  expect(reset.reply).toMatchObject({ executed: false, failure: 'unreachable' })
  expect((await outcome(({ socket }) => socket.end())).answer).toEqual(closed)
  expect((await outcome(({ socket }) => socket.end('SSH-2.0-OpenSSH\r\n'))).answer).toMatchObject({
    error: { code: -32004 },
  })
  expect(
    (await outcome(({ socket }) => socket.end('HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'))).answer,
  ).toEqual(closed)
  // Every request was sent once: nobody can know that the agent did nothing.
  expect(agent.asked).toHaveLength(8)
  expect(host.connector.inFlight('agent-1')).toBe(0)
})

test('OUT-2, A3, A2 - outcome: an agent that never begins, or never ends, its answer', async () => {
  const { outcome, agent, host } = await openBench({ timeouts: { defaultTimeoutMs: 150, maxTimeoutMs: 1000 } })
  const scripts: Script[] = [
    hang,
    (_asked, response) => response.writeHead(200, { 'Content-Type': 'application/json' }).write('{"jsonrpc":"2.0",'),
    (_asked, response) => response.writeHead(200, { 'Content-Length': 100 }).flushHeaders(),
    ({ socket }) => socket.write('HTTP/1.1 200 OK\r\nX-Never: '),
  ]
  for (const script of scripts) {
    const { answer, reply } = await outcome(script)
    expect(answer).toEqual(failed(-32001, 'agent timeout'))
    expect(reply).toMatchObject({ executed: false, error: 'agent timeout', failure: 'timeout' })
  }
  // An agent that is given up loses its connections.
  await until(async () => (await agent.connections()) === 0)
  expect(host.connector.inFlight('agent-1')).toBe(0)
})

test('OUT-3, A3 - outcome: 502, 503 and 504 are unavailable, with any body', async () => {
  const { outcome } = await openBench()
  for (const status of [502, 503, 504]) {
    for (const body of [
      '',
      'Bad Gateway',
      '{"jsonrpc":"2.0","id":1,"result":1}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}',
    ]) {
      const { answer, reply } = await outcome(always(body, status))
      expect(answer).toEqual(failed(-32003, `agent unavailable: HTTP ${status}`))
      expect(reply).toMatchObject({
        executed: false,
        error: `agent unavailable: HTTP ${status}`,
        failure: 'unavailable',
      })
    }
  }
})

test('OUT-4, A3 - outcome: a response over AgentMaxResponseBytes, declared or not, ending or not', async () => {
  const { outcome, agent, host } = await openBench()
  const over = `"${'x'.repeat(LIMIT - 1)}"`
  const scripts: Record<string, Script> = {
    'with content-length': (_asked, response) => json(response, over),
    'a length that is never sent': (_asked, response) =>
      response.writeHead(200, { 'Content-Length': 1e12 }).flushHeaders(),
    'in chunks': (_asked, response) => {
      response.writeHead(200)
      for (const byte of over) response.write(byte)
      response.end()
    },
    'chunks without end': (_asked, response) => {
      const timer = setInterval(() => response.write('x'.repeat(1000)), 1)
      response.on('close', () => clearInterval(timer))
    },
    'as a refusal': (_asked, response) => json(response, over, 400),
  }
  for (const [name, script] of Object.entries(scripts)) {
    const { answer, reply } = await outcome(script)
    expect(answer, name).toEqual(failed(-32603, 'agent response too large'))
    expect(reply, name).toMatchObject({ executed: false, error: 'agent response too large', failure: 'too_large' })
  }
  await until(async () => (await agent.connections()) <= 1)
  expect(host.connector.inFlight('agent-1')).toBe(0)
  const exact = `"${'x'.repeat(LIMIT - 2)}"`
  expect((await outcome((_asked, response) => json(response, exact))).answer).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: JSON.parse(exact),
  })
})

test('OUT-4, LIMIT-2 - outcome: the limit is 10 MiB by default', async () => {
  const { outcome } = await openBench({ agentMaxResponseBytes: 10_485_760 })
  const over = Buffer.alloc(10_485_761, 0x20)
  over.write('1')
  expect((await outcome((_asked, response) => json(response, over))).answer).toEqual(
    failed(-32603, 'agent response too large'),
  )
  const exact = over.subarray(0, 10_485_760)
  expect((await outcome((_asked, response) => response.end(exact))).answer).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: 1,
  })
})

test('OUT-6, A3 - outcome: 2xx with a JSON-RPC result, with null as result, and with other JSON', async () => {
  const { outcome } = await openBench()
  const rows: [string, unknown][] = [
    ['{"jsonrpc":"2.0","id":9,"result":{"a":1}}', { a: 1 }],
    ['{"jsonrpc":"2.0","result":null}', null],
    ['{"jsonrpc":"2.0","id":1,"result":1,"error":null}', 1],
    ['{"some":"thing"}', { some: 'thing' }],
    ['{"jsonrpc":"1.0","result":1}', { jsonrpc: '1.0', result: 1 }],
    ['{"jsonrpc":"2.0","id":1}', { jsonrpc: '2.0', id: 1 }],
    ['[1,2]', [1, 2]],
    ['"text"', 'text'],
    ['null', null],
    [' 12 ', 12],
  ]
  for (const status of [200, 201, 202, 299]) {
    for (const [body, expected] of rows) {
      const { answer, reply } = await outcome(always(body, status, { 'content-type': 'text/plain' }))
      expect(answer).toEqual({ jsonrpc: '2.0', id: 1, result: expected })
      expect(reply).toMatchObject({ executed: true, error: '', status })
      expect(Buffer.from(reply.body).toString()).toBe(body)
    }
  }
})

test('CODE-4, A3 - outcome: 2xx that is not JSON, or no valid response, is -32004', async () => {
  const { outcome } = await openBench()
  const invalid = failed(-32004, 'invalid response from agent')
  for (const body of [
    '',
    'hello',
    '<html>',
    '{"a":',
    Buffer.from([0x22, 0xff, 0x22]),
    '{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}',
    '{"jsonrpc":"2.0","error":"no"}',
  ]) {
    expect((await outcome(always(body))).answer).toEqual(invalid)
  }
  expect((await outcome((_asked, response) => response.writeHead(204).end())).answer).toEqual(invalid)
  // It breaks off in the middle: the agent had the request, so that it is no transport error.
  const broken = await outcome((_asked, response, { socket }) => {
    response.writeHead(200, { 'Content-Length': 1000 })
    response.write('{"jsonrpc"', () => socket.destroy())
  })
  expect(broken.answer).toEqual(invalid)
  expect(broken.reply).toMatchObject({ executed: true, failure: 'invalid_response' })
})

test('A3 - outcome: an event stream as the answer to a plain call is -32004, and closed at once', async () => {
  const { outcome, agent } = await openBench()
  const { answer } = await outcome((_asked, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
    response.write('data: {}\n\n')
  })
  expect(answer).toEqual(failed(-32004, 'invalid response from agent'))
  await until(async () => (await agent.connections()) === 0)
})

test('OUT-7, CODE-3, A3 - outcome: a refusal is -32003 with the status and the beginning of the body', async () => {
  const { outcome } = await openBench({ agentMaxResponseBytes: 1_000_000 })
  for (const status of [400, 401, 403, 404, 409, 422, 500]) {
    const { answer, reply } = await outcome(always('{"why":"no"}', status))
    const message = `agent rejected the request: HTTP ${status}`
    expect(answer).toEqual(failed(-32003, message, { status, body: '{"why":"no"}' }))
    expect(reply).toMatchObject({ executed: true, error: '', status })
    expect(reply.failure).toBeUndefined()
  }
  const { answer } = await outcome(always(`a${'é'.repeat(40_000)}`, 400))
  // Cut at 64 KiB, in the middle of a character.
  expect(answer.error?.data).toEqual({ status: 400, body: `a${'é'.repeat(32_767)}` })
})

test('A3, R8 - outcome: redirects are never followed, and other statuses are -32004', async () => {
  const { outcome, agent } = await openBench()
  const elsewhere = await startAgent()
  for (const status of [300, 301, 302, 303, 304, 307, 308]) {
    expect((await outcome(always('', status, { location: elsewhere.url }))).answer).toEqual(
      failed(-32004, `invalid response from agent: HTTP ${status}`),
    )
  }
  for (const status of [402, 405, 418, 429, 501, 505, 599]) {
    expect((await outcome(always('{"a":1}', status))).answer).toEqual(
      failed(-32004, `invalid response from agent: HTTP ${status}`),
    )
  }
  expect(elsewhere.asked).toEqual([])
  expect(agent.asked).toHaveLength(28)
})

test('A17 - outcome: a compressed answer is refused, because the request asked for none', async () => {
  const { outcome, agent } = await openBench()
  const text = '{"jsonrpc":"2.0","id":1,"result":"ok"}'
  const ok = { jsonrpc: '2.0', id: 1, result: 'ok' }
  for (const encoding of ['identity', 'IDENTITY, identity', '']) {
    expect((await outcome(always(text, 200, { 'content-encoding': encoding }))).answer, encoding).toEqual(ok)
  }
  expect(agent.asked[0]?.headers['accept-encoding']).toBe('identity')
  for (const [encoding, body] of [
    ['gzip', gzipSync(text)],
    ['X-GZIP', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity, gzip', gzipSync(text)],
    ['gzip', gzipSync('x'.repeat(LIMIT + 1))],
    ['rot13', text],
  ] as const) {
    expect((await outcome(always(body, 200, { 'content-encoding': encoding }))).answer, encoding).toEqual(
      failed(-32004, 'invalid response from agent'),
    )
  }
})

test('CODE-2, A3 - outcome: an agent that is not registered, or no longer', async () => {
  const { host, agent } = await openBench()
  expect(await host.call('nobody')).toEqual(failed(-32002, 'agent not found: nobody'))
  await host.deregister('agent-1')
  expect(await host.call('agent-1')).toEqual(failed(-32002, 'agent not found: agent-1'))
  expect(agent.asked).toEqual([])
  expect(host.finished).toMatchObject([
    { agentId: 'unknown', status: 'error', errorCode: '-32002' },
    { agentId: 'unknown', status: 'error', errorCode: '-32002' },
  ])
})

test('R8 - outcome: an address that is refused is not connected to, and its refusal says nothing of the network', async () => {
  const agent = await startAgent()
  // What a name stands for has changed since the agent was registered.
  const addressPolicy = new AgentAddressPolicy({ deny: ['127.0.0.0/8', '::1'] })
  const host = await openGateway({ addressPolicy })
  await host.register('by-address', agent.url)
  await host.register('by-name', `http://localhost:${agent.port}/`)
  for (const id of ['by-address', 'by-name']) {
    expect(await host.call(id)).toEqual(failed(-32003, 'agent unreachable: its address may not be called'))
  }
  expect(await agent.connections()).toBe(0)
})

test('A3 - outcome: a dead agent does not hold up another', async () => {
  const { host } = await openBench()
  // Accepts connections and says nothing.
  const silent = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  await host.register('silent', `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`)
  const waiting = Array.from({ length: 50 }, () => host.call('silent'))
  for (let i = 0; i < 20; i++) expect(await host.call('agent-1')).toMatchObject({ result: {} })
  await until(() => host.connector.inFlight('silent') === 50)
  await host.connector.close(0)
  const codes = (await Promise.all(waiting)).map(({ error }) => error?.code)
  expect(new Set(codes)).toEqual(new Set([-32003]))
})

test('A14, GW-7 - metrics: each request is reported with its agent, method, status, code and times', async () => {
  const host = await openGateway()
  const agent = await startAgent((_asked, response) => void setTimeout(() => json(response, '1'), 30))
  await host.register('agent-1', agent.url)
  const methods = ['message/send', 'tasks/get', 'tasks/cancel', 'tasks/send', 'message/sent', 'unknown', '__proto__']
  for (const method of methods) await host.call('agent-1', {}, method)
  expect(host.finished.map(({ method }) => method)).toEqual([...methods.slice(0, 4), 'unknown', 'unknown', 'unknown'])
  for (const { agentId, status, errorCode, seconds, firstByteSeconds } of host.finished.splice(0)) {
    expect([agentId, status, errorCode]).toEqual(['agent-1', 'success', undefined])
    expect(seconds).toBeGreaterThan(0.025)
    expect(firstByteSeconds).toBe(seconds)
  }
  const outcomes: [ReturnType<typeof always>, string][] = [
    [always('x'), '-32004'],
    [always('', 503), '-32003'],
    [always('', 400), '-32003'],
    [always('{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"mine"}}'), 'agent'],
  ]
  for (const [script, errorCode] of outcomes) {
    agent.script = script
    await host.call('agent-1')
    expect(host.finished.splice(0)).toMatchObject([{ agentId: 'agent-1', status: 'error', errorCode }])
  }
  await host.call('nobody')
  await host.call('Not-An-Id')
  expect(host.finished.splice(0)).toMatchObject([
    { agentId: 'unknown', method: 'message/send', errorCode: '-32002' },
    { agentId: 'unknown', method: 'message/send', errorCode: '-32600' },
  ])
})

test('A14 - metrics: hooks that throw affect no request', async () => {
  const host = await openGateway({
    hooks: {
      requestFinished() {
        throw new Error('hook')
      },
      failed() {
        throw new Error('hook')
      },
    },
  })
  const agent = await startAgent(result('1'))
  await host.register('agent-1', agent.url)
  expect(await host.call('agent-1')).toMatchObject({ result: 1 })
  await until(() => host.connector.inFlight('agent-1') === 0)
})

test('A10 - a large reply is read a piece at a time, whether it is one string or many values', () => {
  for (const result of [JSON.stringify('x'.repeat(10_000_000)), `[${'1000000000,'.repeat(900_000)}0]`]) {
    const body = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`)
    const steps = agentAnswer('agent-1', { executed: true, error: '', status: 200, body })
    let pieces = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) pieces++
    expect(pieces).toBeGreaterThan(10)
    const said = 'result' in step.value ? Buffer.from(step.value.result).toString() : ''
    expect(said === result).toBe(true)
  }
})
