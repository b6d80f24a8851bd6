import type { ServerResponse } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { AgentWire } from '../../src/subscriber/wire/agent-wire.ts'
import type { Script } from '../agents.ts'
import { hang, json, startAgent } from '../agents.ts'
import { openGateway } from '../gateway-host.ts'

const TASK_10 =
  '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"metadata":{"n":12345678901234567890}}}'
const TASK_03 = '{"id":"t","contextId":"c","kind":"task","status":{"state":"completed"}}'
const PARAMS_10 = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] } }
const PARAMS_03 = { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] } }

const sse = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
const event = (result: unknown): string => `data: ${JSON.stringify({ jsonrpc: '2.0', id: 0, result })}\n\n`

const status = (state: string) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } })

const ERROR = (code: number, message = 'no'): string =>
  `{"jsonrpc":"2.0","id":null,"error":{"code":${code},"message":"${message}"}}`

/** Speaks A2A 1.0 and nothing else. */
const speaks10: Script = ({ body, headers }, response) => {
  const { method } = JSON.parse(body) as { method: string }
  if (headers['a2a-version'] !== '1.0') json(response, ERROR(-32009))
  else if (method !== 'SendMessage') json(response, ERROR(-32601))
  else json(response, `{"jsonrpc":"2.0","id":1,"result":${TASK_10}}`)
}

/** Speaks A2A 0.3 and nothing else; it does not know the header. */
const speaks03: Script = ({ body }, response) => {
  const { method } = JSON.parse(body) as { method: string }
  if (method === 'message/send') json(response, `{"jsonrpc":"2.0","id":1,"result":${TASK_03}}`)
  else json(response, ERROR(method === 'tasks/get' ? -32001 : -32601), method === 'tasks/get' ? 200 : 400)
}

async function openWithAgent(script: Script, card: object = {}) {
  const host = await openGateway()
  const agent = await startAgent(script)
  const register = async (more: object): Promise<void> => {
    const basics = { agent_id: 'agent-1', name: 'a', url: agent.url }
    await host.registry.register({ ...basics, ...more }, { clientId: 'owner' })
  }
  await register(card)
  const ask = async (path: string, method: string, params: object): Promise<unknown> => {
    const { text } = await host.post(path, { jsonrpc: '2.0', id: 'i', method, params })
    return JSON.parse(text)
  }
  const stream = async (path: string, method: string, params: object): Promise<unknown[]> => {
    const { text } = await host.post(path, { jsonrpc: '2.0', id: 'i', method, params })
    return text
      .split('\n\n')
      .filter((block) => block.startsWith('data: '))
      .map((block) => JSON.parse(block.slice('data: '.length)) as unknown)
  }
  const asked = (): unknown[] =>
    agent.asked
      .splice(0)
      .map(({ body, headers }) => [headers['a2a-version'], (JSON.parse(body) as { method: string }).method])
  return { host, agent, register, ask, stream, asked }
}

test('wire - a call of A2A 0.3 reaches an agent of 1.0 in 1.0, and its answer comes back in 0.3', async () => {
  const { host, agent } = await openWithAgent(speaks10, { a2a: { wire: '1.0' } })
  const { text } = await host.post(
    'agent-1/v0.3',
    `{"jsonrpc":"2.0","id":9007199254740993,"method":"message/send","params":${JSON.stringify(PARAMS_03)}}`,
    { 'x-a2a-extensions': 'urn:e' },
  )
  expect(text).toBe(
    '{"jsonrpc":"2.0","id":9007199254740993,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"metadata":{"n":12345678901234567890}}}',
  )
  const [first] = agent.asked
  const body = first?.body ?? ''
  expect(JSON.parse(body)).toMatchObject({ jsonrpc: '2.0', method: 'SendMessage', params: PARAMS_10 })
  expect(body).toContain('"id":9007199254740993')
  expect(first?.headers).toMatchObject({ 'a2a-version': '1.0', 'a2a-extensions': 'urn:e' })
  expect(agent.asked).toHaveLength(1)
})

test('wire - a call of A2A 1.0 reaches an agent of 0.3 in 0.3, and its answers and errors come back in 1.0', async () => {
  const { ask, asked } = await openWithAgent(speaks03, { protocolVersion: '0.3.0' })
  expect(await ask('agent-1', 'SendMessage', PARAMS_10)).toEqual({
    jsonrpc: '2.0',
    id: 'i',
    result: { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
  })
  expect(await ask('agent-1', 'GetTask', { id: 't' })).toMatchObject({ error: { code: -32001 } })
  expect(asked()).toEqual([
    ['0.3', 'message/send'],
    ['0.3', 'tasks/get'],
  ])
})

test('wire - a request without a translation does not reach the agent', async () => {
  const { ask, stream, asked } = await openWithAgent(speaks03, { a2a: { wire: '0.3' } })
  expect(await ask('agent-1', 'ListTasks', {})).toMatchObject({
    id: 'i',
    error: { code: -32004, data: [{ reason: 'UNSUPPORTED_OPERATION', domain: 'a2a-protocol.org' }] },
  })
  expect(await ask('agent-1', 'SendMessage', { message: 7 })).toMatchObject({ id: 'i', error: { code: -32602 } })
  expect(await ask('agent-1', 'SendStreamingMessage', {})).toMatchObject({ id: 'i', error: { code: -32602 } })
  expect(asked()).toEqual([])
  const { stream: streamTo10, asked: asked10 } = await openWithAgent(speaks10, { a2a: { wire: '1.0' } })
  expect(await streamTo10('agent-1/v0.3', 'message/stream', {})).toMatchObject([{ id: 'i', error: { code: -32602 } }])
  expect([asked10(), await stream('agent-1/v0.3', 'message/stream', {})]).toMatchObject([
    [],
    [{ error: { code: -32601 } }],
  ])
})

test('wire - an agent of unknown version is called in the version of the caller, then in the other one, which is remembered', async () => {
  const { ask, asked, register } = await openWithAgent(speaks10)
  const send = async (): Promise<void> =>
    expect(await ask('agent-1/v0.3', 'message/send', PARAMS_03)).toMatchObject({ result: { kind: 'task' } })
  const both = [
    ['0.3', 'message/send'],
    ['1.0', 'SendMessage'],
  ]
  await send()
  expect(asked()).toEqual(both)
  await send()
  expect(asked()).toEqual([['1.0', 'SendMessage']])
  expect(await ask('agent-1', 'SendMessage', PARAMS_10)).toMatchObject({ result: { task: {} } })
  expect(asked()).toEqual([['1.0', 'SendMessage']])
  // A registration that changes nothing is a heartbeat.
  await register({})
  await send()
  expect(asked()).toEqual([['1.0', 'SendMessage']])
  await register({ description: 'new' })
  await send()
  expect(asked()).toEqual(both)
})

test('wire - an agent of unknown version that answers HTTP 400 to A2A 1.0 is called in 0.3', async () => {
  const { ask, asked } = await openWithAgent(speaks03)
  for (const expected of [2, 1]) {
    expect(await ask('agent-1', 'SendMessage', PARAMS_10)).toMatchObject({ result: { task: { id: 't' } } })
    expect(asked()).toHaveLength(expected)
  }
})

test('wire - an agent that knows the method in no version answers for itself', async () => {
  const { ask, asked } = await openWithAgent((_asked, response) => json(response, ERROR(-32601, 'mine')))
  for (let i = 0; i < 2; i++) {
    expect(await ask('agent-1', 'GetTask', { id: 't' })).toMatchObject({ error: { code: -32601, message: 'mine' } })
    expect(asked()).toEqual([
      ['1.0', 'GetTask'],
      ['0.3', 'tasks/get'],
    ])
  }
})

test('wire - an answer that is not what its version defines is INVALID_AGENT_RESPONSE', async () => {
  const { ask, stream } = await openWithAgent(
    ({ body }, response) => {
      if (body.includes('Streaming')) sse(response).end(event({ task: { id: 't', status: { state: 7 } } }))
      else json(response, '{"jsonrpc":"2.0","id":1,"result":{"neither":1}}')
    },
    { a2a: { wire: '1.0' } },
  )
  expect(await ask('agent-1/v0.3', 'message/send', PARAMS_03)).toMatchObject({
    error: { code: -32006, data: [{ reason: 'INVALID_AGENT_RESPONSE' }] },
  })
  expect(await stream('agent-1/v0.3', 'message/stream', PARAMS_03)).toMatchObject([
    { error: { code: -32006, data: [{ reason: 'INVALID_AGENT_RESPONSE' }] } },
  ])
})

test('wire - events of a 1.0 stream reach a client of 0.3, and the last interruption is final', async () => {
  const { stream, asked } = await openWithAgent(
    (_asked, response) => {
      sse(response).write(event({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } }))
      response.write(event(status('TASK_STATE_INPUT_REQUIRED')))
      response.write(event(status('TASK_STATE_WORKING')))
      response.end(event({ ...status('TASK_STATE_INPUT_REQUIRED'), metadata: 'ä☃' }))
    },
    { supportedInterfaces: [{ url: 'http://elsewhere/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] },
  )
  expect(await stream('agent-1/v0.3', 'message/stream', PARAMS_03)).toMatchObject([
    { id: 'i', result: { kind: 'task', status: { state: 'submitted' } } },
    { id: 'i', result: { kind: 'status-update', status: { state: 'input-required' }, final: false } },
    { id: 'i', result: { kind: 'status-update', status: { state: 'working' }, final: false } },
    { id: 'i', result: { kind: 'status-update', status: { state: 'input-required' }, final: true } },
  ])
  expect(asked()).toEqual([['1.0', 'SendStreamingMessage']])
})

test('wire - an interruption is not held back while the agent is silent', async () => {
  const { host } = await openWithAgent(
    (_asked, response) => {
      const status = { state: 'TASK_STATE_INPUT_REQUIRED' }
      sse(response).write(event({ statusUpdate: { taskId: 't', contextId: 'c', status } }))
    },
    { a2a: { wire: '1.0' } },
  )
  const response = await fetch(`${host.base}/a2a/agent-1/v0.3`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: PARAMS_03 }),
  })
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.includes('"final":true')) break
  }
  expect(text).toContain('"input-required"')
  await until(() => host.connector.inFlight('agent-1') === 0)
})

test('wire - events of a 0.3 stream reach a client of 1.0, after a task that A2A 1.0 requires', async () => {
  const { stream } = await openWithAgent(
    (_asked, response) => {
      const artifact = { artifactId: 'a', parts: [{ kind: 'text', text: 'ä☃' }] }
      sse(response).write(event({ kind: 'artifact-update', taskId: 't', contextId: 'c', artifact }))
      response.write('data: {"jsonrpc":"2.0","id":0,"error":{"code":-32001,"message":"gone","data":{"a":1}}}\n\n')
      response.end(
        event({ kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'completed' }, final: true }),
      )
    },
    { a2a: { wire: '0.3' } },
  )
  expect(await stream('agent-1', 'SendStreamingMessage', PARAMS_10)).toMatchObject([
    { id: 'i', result: { task: { id: 't', contextId: 'c' } } },
    { id: 'i', result: { artifactUpdate: { artifact: { parts: [{ text: 'ä☃' }] } } } },
    { id: 'i', error: { code: -32001, data: [{ reason: 'TASK_NOT_FOUND' }, { value: { a: 1 } }] } },
    { id: 'i', result: { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } } },
  ])
})

test('wire - a refusal in the first event of a 0.3 stream is JSON in 1.0, and a stream that begins late is a stream', async () => {
  const { host, agent } = await openWithAgent(
    (_asked, response) => {
      // The head, and then the event in pieces, as a slow connection brings them.
      sse(response).write('event: error\nda')
      response.write('ta: {"jsonrpc":"2.0","id":0,"error":{"code":-32004,"message":"n\u00f6"')
      response.end('}}\n\n')
    },
    { a2a: { wire: '0.3' } },
  )
  const body = { jsonrpc: '2.0', id: 'i', method: 'SendStreamingMessage', params: PARAMS_10 }
  const refused = await host.post('agent-1', body)
  expect(refused.headers.get('content-type')).toBe('application/json')
  expect(JSON.parse(refused.text)).toMatchObject({ id: 'i', error: { code: -32004, message: 'n\u00f6' } })
  const late = Promise.withResolvers<ServerResponse>()
  agent.script = (_asked, response) => {
    sse(response).flushHeaders()
    late.resolve(response)
  }
  const answer = await fetch(`${host.base}/a2a/agent-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(answer.headers.get('content-type')).toContain('text/event-stream')
  const response = await late.promise
  response.end(event({ kind: 'task', id: 't', contextId: 'c', status: { state: 'completed' } }))
  expect(await answer.text()).toContain('TASK_STATE_COMPLETED')
})

test('wire - a stream finds the version of its agent too, and the agent runs it once', async () => {
  let runs = 0
  const { stream, asked } = await openWithAgent(({ body, headers }, response) => {
    if (!body.includes('SendStreamingMessage') || headers['a2a-version'] !== '1.0') return json(response, ERROR(-32009))
    runs++
    sse(response).end(event(JSON.parse(TASK_10)))
  })
  for (let i = 1; i <= 2; i++) {
    expect(await stream('agent-1/v0.3', 'message/stream', PARAMS_03)).toMatchObject([{ result: { kind: 'task' } }])
    expect([runs, asked().length]).toEqual([i, i === 1 ? 2 : 1])
  }
})

test("wire - GET /a2a/{agent_id}/stream asks in the agent's version, and shows the gateway's own events", async () => {
  const { host, agent, asked } = await openWithAgent(({ body, headers }, response) => {
    if (headers['a2a-version'] !== '1.0' || !body.includes('SendStreamingMessage')) return json(response, ERROR(-32601))
    sse(response).end(event({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } }))
  })
  const get = async (): Promise<string> => (await fetch(`${host.base}/a2a/agent-1/stream?message=x&contextId=c`)).text()
  const text = await get()
  expect(text).toContain('event: task.done\n')
  expect(text).toContain('"parts":[{"text":"hi"}]')
  expect(JSON.parse(agent.asked[1]?.body ?? '')).toMatchObject({
    method: 'SendStreamingMessage',
    params: { message: { role: 'ROLE_USER', contextId: 'c', parts: [{ text: 'x' }] } },
  })
  expect(asked()).toEqual([
    ['0.3', 'message/stream'],
    ['1.0', 'SendStreamingMessage'],
  ])
  // A plain answer is the stream's one event, as it always was.
  agent.script = (_asked, response) => json(response, '{"jsonrpc":"2.0","id":1,"result":{"message":{}}}')
  expect(await get()).toContain('event: task.done\n')
  agent.script = (_asked, response) => json(response, '{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}')
  expect(await get()).toContain('event: task.error\n')
})

test("wire - the gateway's own dialect reaches every agent unchanged", async () => {
  const { ask, asked } = await openWithAgent(speaks10, { a2a: { wire: '1.0' } })
  expect(await ask('agent-1', 'message/send', PARAMS_03)).toMatchObject({ error: { code: -32009 } })
  expect(asked()).toEqual([[undefined, 'message/send']])
})

test('wire - a caller that leaves before the answer cancels nothing and leaves nothing', async () => {
  const { host, agent } = await openWithAgent(hang, { a2a: { wire: '1.0' } })
  const controller = new AbortController()
  const response = fetch(`${host.base}/a2a/agent-1/v0.3`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: PARAMS_03 }),
    signal: controller.signal,
  })
  response.catch(() => {})
  await agent.reached(1)
  controller.abort()
  await until(() => host.connector.inFlight('agent-1') === 0)
  expect(agent.asked).toHaveLength(1)
})

test('wire - an extended card has the addresses of the gateway, in the version of the caller', async () => {
  const card = { name: 'Extended', url: 'http://secret.internal/', supportedInterfaces: [], skills: [] }
  const { ask, host } = await openWithAgent((_asked, response) =>
    json(response, JSON.stringify({ jsonrpc: '2.0', id: 1, result: card })),
  )
  const at10 = await ask('agent-1', 'GetExtendedAgentCard', {})
  const at03 = await ask('agent-1/v0.3', 'agent/getAuthenticatedExtendedCard', {})
  expect(at10).toMatchObject({ result: { name: 'Extended' } })
  expect(JSON.stringify(at10)).toContain(`"url":"${host.base}/a2a/agent-1"`)
  expect(at03).toMatchObject({ result: { name: 'Extended', url: `${host.base}/a2a/agent-1/v0.3` } })
  expect(JSON.stringify([at10, at03])).not.toContain('secret.internal')
})

test('wire - the registration, then the interfaces, then protocolVersion tell the version of an agent', () => {
  const url = 'http://agent/'
  const jsonRpc = (protocolVersion: string, at = url) => ({ url: at, protocolBinding: 'JSONRPC', protocolVersion })
  const rest = (protocolVersion: string) => ({ url, protocolBinding: 'HTTP+JSON', protocolVersion })
  const rows: [card: object, for10: string, for03: string, isOpen: boolean][] = [
    [{}, '1.0', '0.3', true],
    [{ protocolVersions: ['1.0'] }, '1.0', '0.3', true],
    [{ protocolVersion: '2.0' }, '1.0', '0.3', true],
    [{ protocolVersion: 7, supportedInterfaces: 'x', a2a: 'x' }, '1.0', '0.3', true],
    [{ supportedInterfaces: [null, 7, {}, rest('1.0')] }, '1.0', '1.0', false],
    [{ protocolVersion: '0.3.0' }, '0.3', '0.3', false],
    [{ protocolVersion: '1.0' }, '1.0', '1.0', false],
    [{ protocolVersion: '0.3.0', supportedInterfaces: [jsonRpc('1.0')] }, '1.0', '1.0', false],
    [{ supportedInterfaces: [jsonRpc('1.0'), jsonRpc('0.3')] }, '1.0', '0.3', false],
    [{ supportedInterfaces: [jsonRpc('1.0', 'http://agent/v1'), jsonRpc('0.3')] }, '0.3', '0.3', false],
    [{ supportedInterfaces: [rest('1.0'), jsonRpc('0.3.0', 'http://elsewhere/')] }, '0.3', '0.3', false],
    [{ a2a: { wire: '0.3' }, supportedInterfaces: [jsonRpc('1.0')] }, '0.3', '0.3', false],
    [{ a2a: { wire: 'auto' }, protocolVersion: '0.3' }, '0.3', '0.3', false],
  ]
  const stored = { registered_by: 'o', registered_at: '', last_seen: '', protocolVersions: ['1.0'] }
  for (const [card, for10, for03, isOpen] of rows) {
    const wire = new AgentWire({ ...stored, agent_id: 'agent-1', name: 'a', url, ...card })
    expect([card, wire.versionFor('1.0'), wire.versionFor('0.3'), wire.isOpen]).toEqual([card, for10, for03, isOpen])
  }
})
