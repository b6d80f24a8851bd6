import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { always, json, startAgent } from '../agents.ts'
import type { GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'

const RESULT = '{ "b":1,"a":12345678901234567890, "a":"\\u00e9",\n"n":1.0 }'

/** Answers with a result whose text a parser would change. */
const verbatim: Script = (_asked, response) => json(response, `{"jsonrpc":"2.0","id":"x","result":${RESULT}}`)

async function openWithAgent(script: Script = verbatim, options: HostOptions = {}) {
  const host = await openGateway(options)
  const agent = await startAgent(script)
  await host.register('agent-1', agent.url)
  return { host, agent }
}

const call = (method: string, id = '1'): string =>
  `{"jsonrpc":"2.0", "id":${id},"method":"${method}","params":{"z":1.50,"a":[]}}`

const without = (method: string): string => `{"jsonrpc":"2.0","method":"${method}","params":{}}`

const V10 = { 'a2a-version': '1.0' }
const V03 = { 'a2a-version': '0.3' }

const codeOf = async (host: GatewayHost, path: string, body: string, headers = {}) => {
  const { status, text } = await host.post(path, body, headers)
  const { error, id } = JSON.parse(text) as { error?: { code: number; data?: unknown }; id: unknown }
  return { status, code: error?.code, data: error?.data, id }
}

test('native - a call passes byte for byte in both directions, with the version in its header', async () => {
  const { host, agent } = await openWithAgent()
  const rows: [path: string, method: string, headers: Record<string, string>, version: string, label: string][] = [
    ['agent-1', 'SendMessage', V10, '1.0', 'message/send'],
    ['agent-1', 'GetTask', {}, '1.0', 'tasks/get'],
    ['agent-1/', 'ListTasks', V10, '1.0', 'tasks/list'],
    ['agent-1', 'CancelTask', { 'a2a-version': '1.0.2' }, '1.0', 'tasks/cancel'],
    ['agent-1?A2A-Version=1.0', 'GetTaskPushNotificationConfig', {}, '1.0', 'tasks/pushNotificationConfig/get'],
    ['agent-1', 'message/send', V03, '0.3', 'message/send'],
    ['agent-1', 'tasks/get', V10, '0.3', 'tasks/get'],
    ['agent-1?A2A-Version=0.3', 'tasks/get', {}, '0.3', 'tasks/get'],
    ['agent-1/v0.3', 'message/send', {}, '0.3', 'message/send'],
    ['agent-1/v0.3/', 'tasks/pushNotificationConfig/set', {}, '0.3', 'tasks/pushNotificationConfig/set'],
    ['agent-1/v0.3', 'custom/method', {}, '0.3', 'unknown'],
  ]
  const ids = ['9007199254740993', '1', '-3', '"a string"', '"ü☃\\u2028"']
  for (const [row, [path, method, headers, version, label]] of rows.entries()) {
    const id = ids[row % ids.length]
    const body = call(method, id)
    const { status, text } = await host.post(path, body, headers)
    expect([path, method, status, text]).toEqual([path, method, 200, `{"jsonrpc":"2.0","id":${id},"result":${RESULT}}`])
    const asked = agent.asked.pop()
    expect(asked?.body).toBe(body)
    expect(asked?.headers).toMatchObject({ 'a2a-version': version, 'x-broker-caller-id': 'anonymous' })
    expect(host.finished.pop()).toMatchObject({ agentId: 'agent-1', method: label, status: 'success' })
  }
})

test('native - the dialect gets no header of its own, and a path with a slash or without is the same', async () => {
  const { host, agent } = await openWithAgent()
  for (const path of ['agent-1', 'agent-1/']) {
    const { status, text } = await host.post(path, call('message/send'))
    expect([status, text]).toEqual([200, `{"jsonrpc":"2.0","id":1,"result":${RESULT}}`])
    expect(agent.asked.pop()?.headers['a2a-version']).toBeUndefined()
  }
  expect((await host.post('agent-1//', call('message/send'))).status).toBe(404)
})

test("native - an agent's error passes unchanged, with any status", async () => {
  const error = '{"code":-32001,"message":"Task not found","data":[{"@type":"x", "n":1.0}]}'
  for (const status of [200, 404]) {
    const { host } = await openWithAgent(always(`{"jsonrpc":"2.0","id":null,"error":${error}}`, status))
    const { text } = await host.post('agent-1', call('GetTask', '"id"'), V10)
    expect(text).toBe(`{"jsonrpc":"2.0","id":"id","error":${error}}`)
    expect(host.finished).toMatchObject([{ status: 'error', errorCode: 'agent' }])
  }
})

test('native - headers of the answer that belong to A2A reach the caller, and no others', async () => {
  const sent = {
    'A2A-Extensions': 'https://x.example/ext',
    'X-A2A-Extensions': 'https://y.example/ext',
    'A2A-Version': '1.0',
    'Retry-After': '7',
    'Set-Cookie': 'a=b',
    Server: 'secret',
  }
  const { host } = await openWithAgent(always(`{"jsonrpc":"2.0","id":1,"result":{}}`, 200, sent))
  const { headers } = await host.post('agent-1', call('SendMessage'), V10)
  const names = Object.keys(sent).map((name) => headers.get(name))
  expect(names).toEqual(['https://x.example/ext', 'https://y.example/ext', '1.0', '7', null, null])
  expect((await host.post('agent-1', call('message/send'))).headers.get('a2a-extensions')).toBeNull()
})

test('native - a version that is not served is refused, and the agent is not asked', async () => {
  const { host, agent } = await openWithAgent()
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: 'VERSION_NOT_SUPPORTED',
    domain: 'a2a-protocol.org',
    metadata: { supportedVersions: '1.0, 0.3' },
  }
  for (const [method, code] of [
    ['SendMessage', -32009],
    ['SendStreamingMessage', -32009],
    ['message/send', -32600],
  ] as const) {
    const answer = await codeOf(host, 'agent-1', call(method, '"a"'), { 'a2a-version': '2.0' })
    expect([method, answer]).toEqual([method, { status: 200, code, data: [info], id: 'a' }])
  }
  // Methods of the agent's own are not A2A's to refuse.
  expect(await codeOf(host, 'agent-1', call('custom'), { 'a2a-version': '2.0' })).toMatchObject({ code: undefined })
  expect(agent.asked).toHaveLength(1)
})

test('native - CONNECTORSA2_A_NATIVE=off serves the dialect only, and never runs a stream whose answer it would refuse', async () => {
  const { host, agent } = await openWithAgent(verbatim, { native: 'off' })
  expect((await host.post('agent-1/v0.3', call('message/send'))).status).toBe(404)
  expect(await codeOf(host, 'agent-1', call('SendMessage'), V10)).toMatchObject({ code: undefined })
  expect(agent.asked.pop()?.headers['a2a-version']).toBe('1.0')
  for (const method of ['SendStreamingMessage', 'SubscribeToTask', 'tasks/resubscribe']) {
    expect(await codeOf(host, 'agent-1', call(method), V10)).toMatchObject({ status: 200, code: -32601 })
  }
  expect(agent.asked).toHaveLength(0)
})

test('native - Prefer: wait bounds the time of the agent', async () => {
  const { host } = await openWithAgent(() => {})
  const answer = await codeOf(host, 'agent-1', call('SendMessage'), { ...V10, prefer: 'wait=1' })
  expect(answer).toMatchObject({ code: -32603, data: [{ reason: 'AGENT_TIMEOUT' }] })
  expect(host.finished.pop()?.seconds).toBeLessThan(10)
})

test('A42 - a call of official A2A without an id is answered with the id null; only the dialect has notifications', async () => {
  const { host, agent } = await openWithAgent()
  const rows: [path: string, method: string, headers: Record<string, string>][] = [
    ['agent-1', 'SendMessage', {}],
    ['agent-1/v0.3', 'message/send', {}],
    ['agent-1/v0.3', 'custom/method', {}],
    ['agent-1', 'tasks/get', V03],
  ]
  for (const [path, method, headers] of rows) {
    const { status, text } = await host.post(path, without(method), headers)
    expect([path, method, status, text]).toEqual([path, method, 200, `{"jsonrpc":"2.0","id":null,"result":${RESULT}}`])
    expect(agent.asked.pop()?.body).toBe(without(method))
  }
  // Its errors are answers too.
  expect(await codeOf(host, 'nobody', without('GetTask'))).toMatchObject({ code: -32603, id: null })
  expect(await codeOf(host, 'agent-1', without('GetTask'), { 'a2a-version': '2.0' })).toMatchObject({ code: -32009 })
  const stream = await host.post('agent-1/v0.3', without('message/stream'))
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  expect(stream.text).toMatch(/^data: \{"jsonrpc":"2\.0","id":null,"result":/)
  for (const method of ['message/send', 'custom/method']) {
    expect(await host.post('agent-1', without(method))).toMatchObject({ status: 202, text: '' })
  }
  await agent.reached(3)
})
