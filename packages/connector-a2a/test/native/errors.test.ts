import { Authorization, parsePolicy } from '@signalbox/broker-core'
import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { always, hang, startAgent } from '../agents.ts'
import type { GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'
const V10 = { 'a2a-version': '1.0' }

interface Failed {
  readonly id: unknown
  readonly error: {
    readonly code: number
    readonly message: string
    readonly data: readonly {
      readonly '@type': string
      readonly reason?: string
      readonly domain?: string
      readonly metadata?: object
      readonly retryDelay?: string
    }[]
  }
}

interface Shown {
  readonly status: number
  readonly type: string | null
  readonly retryAfter: string | null
  readonly id: unknown
  readonly code: number
  readonly message: string
  readonly reason: string | undefined
  readonly metadata: object | undefined
  readonly retryDelay: string | undefined
}

/** Calls a method and returns its error, from a JSON body or from the one event of a stream. */
async function errorOf(
  host: GatewayHost,
  path: string,
  method: string,
  headers: Record<string, string> = {},
): Promise<Shown> {
  const answer = await host.post(path, `{"jsonrpc":"2.0","id":"i","method":"${method}","params":{}}`, headers)
  const type = answer.headers.get('content-type')
  const text = type === 'text/event-stream' ? answer.text.slice('data: '.length) : answer.text
  const { id, error } = JSON.parse(text) as Failed
  const [info, retry] = error.data
  expect(info).toMatchObject({
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    domain: expect.any(String) as string,
  })
  expect(retry?.['@type'] ?? RETRY_INFO).toBe(RETRY_INFO)
  return {
    status: answer.status,
    type,
    retryAfter: answer.headers.get('retry-after'),
    id,
    code: error.code,
    message: error.message,
    reason: info?.reason,
    metadata: info?.metadata,
    retryDelay: retry?.retryDelay,
  }
}

/** How each kind of call shows an error: method, path, content type. */
const KINDS = [
  ['SendMessage', '', 'application/json'],
  ['SendStreamingMessage', '', 'application/json'],
  ['message/send', '/v0.3', 'application/json'],
  ['message/stream', '/v0.3', 'text/event-stream'],
] as const

/** The errors of all kinds of calls to an agent that does this; without a script it is not there. */
async function errorsOf(script?: Script, options: HostOptions = {}, agentId = 'agent-1'): Promise<readonly Shown[]> {
  // Only the agent that never answers has little time for it.
  const timeouts = script === hang ? { timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 1_000 } } : {}
  const host = await openGateway({ ...timeouts, ...options })
  const agent = await startAgent(script)
  await host.register('agent-1', agent.url)
  if (script === undefined) await agent.close()
  const errors: Shown[] = []
  for (const [method, suffix] of KINDS) {
    const shown = await errorOf(host, agentId + suffix, method)
    errors.push(shown)
    expect(host.finished.pop()).toMatchObject({ status: 'error', errorCode: String(shown.code) })
  }
  expect(host.connector.inFlight('agent-1')).toBe(0)
  return errors
}

/** The same error in each kind of call. */
function each(expected: Partial<Shown>): readonly object[] {
  return KINDS.map(([, , type]) => ({ status: 200, type, id: 'i', ...expected }))
}

test('native - errors: an unknown agent', async () => {
  const metadata = { agentId: 'nobody', executed: 'false' }
  const expected = { code: -32603, reason: 'AGENT_NOT_FOUND', metadata, retryAfter: null }
  expect(await errorsOf(hang, {}, 'nobody')).toMatchObject(each(expected))
})

test('native - errors: an agent that is offline may be called again, and did not get the request', async () => {
  const metadata = { agentId: 'agent-1', executed: 'false' }
  const expected = { code: -32603, reason: 'AGENT_UNREACHABLE', metadata, retryAfter: '5', retryDelay: '5s' }
  expect(await errorsOf()).toMatchObject(each({ ...expected, message: 'agent unreachable: connection refused' }))
})

test('native - errors: an agent that closes the connection may have acted', async () => {
  const expected = {
    code: -32603,
    reason: 'AGENT_UNREACHABLE',
    metadata: { agentId: 'agent-1' },
    retryAfter: null,
    retryDelay: undefined,
  }
  expect(await errorsOf(({ socket }) => socket.destroy())).toMatchObject(each(expected))
})

test('native - errors: an agent that is unavailable says for how long', async () => {
  const expected = { code: -32603, reason: 'AGENT_UNREACHABLE', metadata: { agentId: 'agent-1' } }
  expect(await errorsOf(always('', 503))).toMatchObject(each({ ...expected, retryAfter: '5', retryDelay: '5s' }))
  const inSeconds = always('', 503, { 'Retry-After': '30' })
  expect(await errorsOf(inSeconds)).toMatchObject(each({ ...expected, retryAfter: '30', retryDelay: '30s' }))
  const asDate = always('', 503, { 'Retry-After': 'Wed, 21 Oct 2026 07:28:00 GMT' })
  expect(await errorsOf(asDate)).toMatchObject(each({ ...expected, retryAfter: '5' }))
})

test('native - errors: an agent that does not answer in time', async () => {
  const expected = { code: -32603, reason: 'AGENT_TIMEOUT', metadata: { agentId: 'agent-1' } }
  expect(await errorsOf(hang)).toMatchObject(each(expected))
})

test('native - errors: an agent with too many calls', async () => {
  const metadata = { agentId: 'agent-1', executed: 'false' }
  const host = await openGateway({ agentMaxConcurrency: 1 })
  const agent = await startAgent(hang)
  await host.register('agent-1', agent.url)
  const controller = new AbortController()
  const first = fetch(`${host.base}/a2a/agent-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{}}',
    signal: controller.signal,
  })
  first.catch(() => {})
  await agent.reached(1)
  for (const [method, suffix, type] of KINDS) {
    expect(await errorOf(host, `agent-1${suffix}`, method)).toMatchObject({
      status: 200,
      type,
      code: -32603,
      reason: 'AGENT_BUSY',
      metadata,
      retryAfter: '1',
      retryDelay: '1s',
    })
  }
  expect(agent.asked).toHaveLength(1)
  controller.abort()
})

test('native - errors: answers that are no A2A, and redirects', { timeout: 60_000 }, async () => {
  const rows: [Script, string][] = [
    [always('no JSON'), '200'],
    [always(''), '200'],
    [always('{"kind":"task"}'), '200'],
    [always('{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}'), '200'],
    [always('{"error":"no"}', 404), '404'],
    [always('', 418), '418'],
    [always('', 302, { Location: 'http://127.0.0.1/' }), '302'],
    [always(Buffer.from([0x22, 0xff, 0x22])), '200'],
  ]
  for (const [script, httpStatus] of rows) {
    const metadata = { agentId: 'agent-1', httpStatus }
    const expected = { code: -32006, reason: 'INVALID_AGENT_RESPONSE', metadata, retryAfter: null }
    expect(await errorsOf(script)).toMatchObject(each(expected))
  }
})

test('native - errors: an answer that is too large', async () => {
  const expected = { code: -32603, reason: 'RESPONSE_TOO_LARGE', metadata: { agentId: 'agent-1' } }
  const large = always('x'.repeat(2_000))
  expect(await errorsOf(large, { agentMaxResponseBytes: 1_000 })).toMatchObject(each(expected))
})

test('native - errors: a body that is too large, of another type, encoded, or no JSON', async () => {
  const host = await openGateway({ maxBodyBytes: 1_000 })
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  const send = async (body: string, headers: Record<string, string>) => {
    const { status, text } = await host.post('agent-1', body, { ...V10, ...headers })
    const { error } = JSON.parse(text) as Failed
    return [status, error.code, error.data?.[0]?.reason]
  }
  const body = '{"jsonrpc":"2.0","id":1,"method":"SendMessage"}'
  expect(await send(`"${'x'.repeat(2_000)}"`, {})).toEqual([413, -32600, 'REQUEST_TOO_LARGE'])
  expect(await send(body, { 'content-type': 'text/plain' })).toEqual([200, -32005, 'CONTENT_TYPE_NOT_SUPPORTED'])
  expect(await send(body, { 'content-encoding': 'gzip' })).toEqual([415, -32600, undefined])
  expect(await send('{', {})).toEqual([200, -32700, undefined])
  expect(await send(`[${body}]`, {})).toEqual([200, -32600, undefined])
  expect(agent.asked).toHaveLength(0)
})

const TOKENS: Authenticator = {
  authenticate({ headers: { authorization } }) {
    if (authorization === 'Bearer good') return { clientId: 'alice' }
    throw new AuthenticationError('no such token')
  },
}

test('native - errors: a caller without valid credentials gets 401, of which the dialect knows nothing', async () => {
  const host = await openGateway({ authenticator: TOKENS })
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  const send = async (path: string, method: string, headers: Record<string, string> = {}, more = '') => {
    const body = `{"jsonrpc":"2.0","id":7,"method":"${method}","params":{"a":"${more}"}}`
    const answer = await host.post(path, body, headers)
    const { id, error } = JSON.parse(answer.text) as Failed
    return [answer.status, answer.headers.get('www-authenticate'), id, error.code, error.data?.[0]?.reason]
  }
  const native = [401, 'Bearer realm="signalbox"', 7, -32010, 'UNAUTHENTICATED']
  for (const path of ['agent-1', 'nobody', 'Not An Id']) {
    expect(await send(path, 'SendMessage')).toEqual(native)
    expect(await send(path, 'message/send', { 'a2a-version': '0.3' })).toEqual(native)
    expect(await send(path, 'message/send')).toEqual([200, null, 7, -32010, undefined])
  }
  expect(await send('agent-1', 'SendStreamingMessage')).toEqual(native)
  expect(await send('agent-1/v0.3', 'message/stream')).toEqual(native)
  expect(await send('agent-1', 'tasks/resubscribe')).toEqual(native)
  // A long body is not read, so its method is not known.
  const long = 'x'.repeat(70_000)
  expect(await send('agent-1', 'SendMessage', V10, long)).toEqual([...native.slice(0, 2), null, ...native.slice(3)])
  expect(await send('agent-1', 'SendMessage', {}, long)).toEqual([200, null, null, -32010, undefined])
  expect(agent.asked).toHaveLength(0)
  expect(host.finished.every(({ errorCode }) => errorCode === '-32010')).toBe(true)
})

test('native - errors: a caller that the policy forbids gets 403, whether the agent exists or not', async () => {
  const host = await openGateway({
    authorization: new Authorization(parsePolicy({ rules: [] })),
  })
  for (const path of ['agent-1', 'nobody']) {
    for (const [method, suffix] of KINDS) {
      expect(await errorOf(host, path + suffix, method)).toMatchObject({
        status: 403,
        code: -32011,
        reason: 'FORBIDDEN',
        type: 'application/json',
      })
    }
  }
})
