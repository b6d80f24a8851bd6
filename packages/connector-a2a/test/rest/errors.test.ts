import { Authorization, parsePolicy } from '@signalbox/broker-core'
import type { Authenticator } from '@signalbox/http-kit'
import { AdmissionControl, AuthenticationError } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { always, hang } from '../agents.ts'
import type { HostOptions } from '../gateway-host.ts'
import type { Asking, RestHost } from './host.ts'
import { openRest } from './host.ts'

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
const A2A = 'a2a-protocol.org'
const OWN = 'signalbox'

interface Status {
  readonly error: {
    readonly code: number
    readonly status: string
    readonly message: string
    readonly details: readonly Readonly<Record<string, unknown>>[]
  }
}

/** An error as the readers of the official SDKs take it apart: status, name, reason and its domain. */
async function errorOf({ ask }: Pick<RestHost, 'ask'>, request: string, asking: Asking = {}): Promise<unknown[]> {
  const { status, headers, text } = await ask(request, asking)
  // The SDK for Go reads an error by the beginning of its type.
  expect(headers.get('content-type')).toMatch(/^application\/json/)
  const { error } = JSON.parse(text) as Status
  const { code, message, details } = error
  expect(Object.keys(error)).toEqual(['code', 'status', 'message', 'details'])
  expect([code, typeof message]).toEqual([status, 'string'])
  for (const detail of details) {
    expect(detail['@type']).toMatch(/^type\.googleapis\.com\/google\./)
    for (const value of Object.values(detail['metadata'] ?? {})) expect(value).toBeTypeOf('string')
  }
  const info = details.find((detail) => detail['@type'] === ERROR_INFO)
  return [status, error.status, info?.['reason'], info?.['domain']]
}

const REQUESTS = ['POST /message:send', 'POST /message:stream', 'GET /tasks/t', 'GET /tasks/t:subscribe'] as const

async function errorsOf(script: Script | undefined, options: HostOptions = {}, agentId?: string): Promise<unknown[]> {
  // Only the agent that never answers has little time for it.
  const timeouts = script === hang ? { timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 1_000 } } : {}
  const rest = await openRest(script, { ...timeouts, ...options }, { wire: '1.0' }, agentId)
  if (script === undefined) await rest.agent.close()
  const errors: unknown[] = []
  for (const request of REQUESTS) {
    errors.push(await errorOf(rest, request, request.startsWith('POST') ? { body: '{}' } : {}))
    expect(rest.host.finished.pop()?.status).toBe('error')
  }
  expect(rest.host.connector.inFlight('agent-1')).toBe(0)
  return errors
}

const each = (...error: readonly unknown[]): unknown[] => REQUESTS.map(() => error)

test('rest - errors: the gateway answers with the status of each condition', { timeout: 60_000 }, async () => {
  expect(await errorsOf(hang, {}, 'nobody')).toEqual(each(404, 'NOT_FOUND', 'AGENT_NOT_FOUND', OWN))
  expect(await errorsOf(undefined)).toEqual(each(503, 'UNAVAILABLE', 'AGENT_UNREACHABLE', OWN))
  expect(await errorsOf(hang)).toEqual(each(504, 'DEADLINE_EXCEEDED', 'AGENT_TIMEOUT', OWN))
  expect(await errorsOf(always('no JSON'))).toEqual(each(500, 'INTERNAL', 'INVALID_AGENT_RESPONSE', A2A))
  expect(await errorsOf(always('', 302))).toEqual(each(500, 'INTERNAL', 'INVALID_AGENT_RESPONSE', A2A))
  const large = always('x'.repeat(2_000))
  const tooLarge = each(500, 'INTERNAL', 'RESPONSE_TOO_LARGE', OWN)
  expect(await errorsOf(large, { agentMaxResponseBytes: 1_000 })).toEqual(tooLarge)
  expect(await errorsOf(hang, {}, 'Not-An-Id')).toEqual(each(400, 'INVALID_ARGUMENT', 'INVALID_REQUEST', A2A))
})

test('rest - errors: a busy or unreachable agent is answered with Retry-After', async () => {
  const rest = await openRest(hang, { agentMaxConcurrency: 1 })
  const controller = new AbortController()
  rest.send('POST /message:stream', { body: '{}', signal: controller.signal }).catch(() => {})
  await rest.agent.reached(1)
  const { status, headers, text } = await rest.ask('GET /tasks/t')
  expect([status, headers.get('retry-after')]).toEqual([429, '1'])
  expect(JSON.parse(text)).toMatchObject({
    error: {
      status: 'RESOURCE_EXHAUSTED',
      details: [
        { reason: 'AGENT_BUSY', metadata: { executed: 'false' } },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' },
      ],
    },
  })
  expect(rest.agent.asked).toHaveLength(1)
  controller.abort()
})

test.each([
  [-32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
  [-32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
  [-32003, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  [-32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  [-32005, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'],
  [-32006, 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE'],
  [-32007, 400, 'FAILED_PRECONDITION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'],
  [-32008, 400, 'FAILED_PRECONDITION', 'EXTENSION_SUPPORT_REQUIRED'],
  [-32009, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'],
  [-32601, 404, 'NOT_FOUND', 'METHOD_NOT_FOUND'],
  [-32602, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
  [-32603, 500, 'INTERNAL', 'INTERNAL_ERROR'],
])('rest - errors: %i of an agent is HTTP %i', async (code, status, name, reason) => {
  const rest = await openRest(always(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'm' } })))
  expect(await errorOf(rest, 'GET /tasks/t')).toEqual([status, name, reason, A2A])
  expect(rest.host.finished).toMatchObject([{ status: 'error', errorCode: 'agent' }])
})

/** Returns the source text of the details that a client gets for an error of an agent. */
async function detailsOf(error: string): Promise<string> {
  const { ask } = await openRest(always(`{"jsonrpc":"2.0","id":1,"error":${error}}`))
  const { text } = await ask('GET /tasks/t')
  return text.slice(text.indexOf('"details":') + 10, -2)
}

test('rest - errors: the details of an agent are kept, and a code of its own too', async () => {
  const own = `[{"@type":"${ERROR_INFO}","reason":"TASK_NOT_FOUND","domain":"${A2A}","metadata":{"n":"1"}}]`
  expect(await detailsOf(`{"code":-32001,"message":"m","data":${own}}`)).toBe(own)
  const other = '{"@type":"type.googleapis.com/x","n":12345678901234567890}'
  expect(await detailsOf(`{"code":-32001,"message":"m","data":[${other}]}`)).toBe(
    `[{"@type":"${ERROR_INFO}","reason":"TASK_NOT_FOUND","domain":"${A2A}"},${other}]`,
  )
  expect(JSON.parse(await detailsOf('{"code":-32050,"message":"m","data":"why"}'))).toEqual([
    { '@type': ERROR_INFO, reason: 'AGENT_ERROR', domain: OWN, metadata: { code: '-32050' } },
    { '@type': 'type.googleapis.com/google.protobuf.Value', value: 'why' },
  ])
})

test('rest - errors: bodies, parameters and versions that cannot be forwarded', async () => {
  const rest = await openRest(undefined, { maxBodyBytes: 10_000 })
  const send = (body: string, headers = {}, request = 'POST /message:send') => errorOf(rest, request, { body, headers })
  const invalid = [400, 'INVALID_ARGUMENT']
  expect(await send('{')).toEqual([...invalid, 'PARSE_ERROR', A2A])
  expect(await send('')).toEqual([...invalid, 'PARSE_ERROR', A2A])
  expect(await send('null')).toEqual([...invalid, 'INVALID_REQUEST', A2A])
  expect(await send('[]')).toEqual([...invalid, 'INVALID_REQUEST', A2A])
  expect(await send('[]', {}, 'POST /tasks/t:cancel')).toEqual([...invalid, 'INVALID_REQUEST', A2A])
  expect(await send(`{"a":${'['.repeat(127)}${']'.repeat(127)}}`)).toEqual([...invalid, 'INVALID_REQUEST', A2A])
  const text = { 'content-type': 'text/plain' }
  expect(await send('{}', text)).toEqual([...invalid, 'CONTENT_TYPE_NOT_SUPPORTED', A2A])
  expect(await send('{}', text, 'POST /tasks/t:cancel')).toEqual([...invalid, 'CONTENT_TYPE_NOT_SUPPORTED', A2A])
  expect(await send('{}', { 'content-encoding': 'gzip' })).toEqual([415, 'INVALID_ARGUMENT', 'INVALID_REQUEST', A2A])
  expect(await send(`"${'x'.repeat(20_000)}"`)).toEqual([413, 'INVALID_ARGUMENT', 'REQUEST_TOO_LARGE', 'signalbox'])
  const version = { 'a2a-version': '2.0' }
  expect(await send('{}', version)).toEqual([400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED', A2A])
  for (const query of ['historyLength=many', 'historyLength=1.5', 'pageSize=99999999999', 'includeArtifacts=yes']) {
    expect(await errorOf(rest, `GET /tasks?${query}`)).toEqual([...invalid, 'INVALID_PARAMS', A2A])
  }
  expect(rest.agent.asked).toHaveLength(0)
})

const TOKENS: Authenticator = {
  authenticate({ headers: { authorization } }) {
    if (authorization === 'Bearer good') return { clientId: 'alice' }
    throw new AuthenticationError('no such token')
  },
}

test('rest - errors: a caller without valid credentials gets 401, with a large body too', async () => {
  const rest = await openRest(undefined, { authenticator: TOKENS })
  const expected = [401, 'UNAUTHENTICATED', 'UNAUTHENTICATED', OWN]
  for (const request of REQUESTS) {
    const body = `{"a":"${'x'.repeat(70_000)}"}`
    expect(await errorOf(rest, request, request.startsWith('POST') ? { body } : {})).toEqual(expected)
  }
  const { headers } = await rest.ask('GET /tasks')
  expect(headers.get('www-authenticate')).toBe('Bearer realm="signalbox"')
  expect(rest.agent.asked).toHaveLength(0)
  const { status } = await rest.ask('GET /tasks', { headers: { authorization: 'Bearer good' } })
  expect(status).toBe(200)
  expect(rest.agent.asked[0]?.headers).toMatchObject({ 'x-broker-caller-id': 'alice' })
  expect(rest.agent.asked[0]?.headers.authorization).toBeUndefined()
})

test('rest - errors: a caller that the policy forbids gets 403, whether the agent exists or not', async () => {
  const authorization = new Authorization(parsePolicy({ rules: [] }))
  for (const agentId of ['agent-1', 'nobody']) {
    expect(await errorsOf(hang, { authorization }, agentId)).toEqual(each(403, 'PERMISSION_DENIED', 'FORBIDDEN', OWN))
  }
})

test.each([
  ['requests', { requestsInFlight: 1 }, 'GET /tasks/t'],
  ['streams', { streams: 1 }, 'GET /tasks/t:subscribe'],
] as const)('rest - errors: a caller that exceeds its limit of %s gets 429', async (_name, caller, request) => {
  const admission = new AdmissionControl({ limits: { caller } })
  const authenticator: Authenticator = { authenticate: () => ({ clientId: 'alice' }) }
  const rest = await openRest(hang, { frontDoor: { admission }, authenticator })
  const controller = new AbortController()
  rest.send(request, { signal: controller.signal }).catch(() => {})
  await rest.agent.reached(1)
  expect(await errorOf(rest, request)).toEqual([429, 'RESOURCE_EXHAUSTED', 'LIMIT_EXCEEDED', OWN])
  controller.abort()
})
