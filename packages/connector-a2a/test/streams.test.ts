import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import type { Script } from './agents.ts'
import { always, hang, json, startAgent } from './agents.ts'
import type { RpcAnswer } from './gateway-host.ts'
import { openGateway } from './gateway-host.ts'

const STREAM = { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }

/** Opens a stream of one event and leaves it open. */
const opens: Script = (_asked, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  response.write('event: task.status\ndata: {"type":"status_update","payload":{"n":1}}\n\n')
}

/** Opens a stream and ends it. */
const ends: Script = (asked, response, request) => {
  void opens(asked, response, request)
  response.end('event: task.done\ndata: {"type":"done","payload":{"n":2}}\n\n')
}

const post = (base: string, agentId: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${base}/a2a/${agentId}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(STREAM),
    ...init,
  })

test('A12, GW-9 - streams: message/stream opens a stream of events, which the agent is asked for by its own headers', async () => {
  const host = await openGateway()
  const agent = await startAgent(ends)
  await host.register('agent-1', agent.url)
  const response = await post(host.base, 'agent-1')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  const text = await response.text()
  expect(text).toContain('event: task.status\n')
  expect(text).toContain('event: task.done\n')
  const { headers = {}, body } = agent.asked[0] ?? {}
  expect(body).toBe(JSON.stringify(STREAM))
  expect(headers).toMatchObject({ accept: 'text/event-stream', 'x-broker-caller-id': 'anonymous' })
  expect(headers['x-broker-stream-id']).toMatch(/^[0-9a-f-]{36}$/)
  expect(text).toContain(`"stream_id":"${String(headers['x-broker-stream-id'])}"`)
  await until(() => host.finished.length === 1 && host.connector.inFlight('agent-1') === 0)
  expect(host.finished).toMatchObject([{ agentId: 'agent-1', method: 'message/stream', status: 'success' }])
  expect(host.connector.openStreams()).toBe(0)
})

test('A9, A12 - streams: a failure before the headers of the agent is a JSON-RPC error', async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  const rows: [Script, object][] = [
    [hang, { code: -32001, message: 'agent timeout' }],
    [always('no', 403), { code: -32003, data: { status: 403, body: 'no' } }],
    [always('', 503), { code: -32003 }],
    [always('', 302), { code: -32004 }],
    [always('{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"mine"}}', 400), { code: 7, message: 'mine' }],
    [({ socket }) => socket.destroy(), { code: -32003 }],
    [always('data: x\n\n', 200, { 'content-encoding': 'gzip' }), { code: -32004 }],
  ]
  for (const [script, error] of rows) {
    agent.script = script
    // Only the agent that never answers has little time for it.
    const params = script === hang ? { configuration: { timeout: 0.3 } } : {}
    const response = await post(host.base, 'agent-1', { body: JSON.stringify({ ...STREAM, params }) })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(await response.json()).toMatchObject({ id: 1, error })
  }
  expect(await (await post(host.base, 'nobody')).json()).toMatchObject({ error: { code: -32002 } })
  expect(host.connector.inFlight('agent-1')).toBe(0)
})

test('A7, GW-10 - streams: GET asks the agent by a message/stream made from the query; nothing is required', async () => {
  const host = await openGateway()
  const agent = await startAgent(ends)
  await host.register('agent-1', agent.url)
  const get = async (query: string): Promise<unknown> => {
    const response = await fetch(`${host.base}/a2a/agent-1/stream${query}`, { headers: { 'x-trace': 't' } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(await response.text()).toContain('event: task.done\n')
    return JSON.parse(agent.asked.at(-1)?.body ?? '')
  }
  const uuid: unknown = expect.stringMatching(/^[0-9a-f-]{36}$/)
  const message = { kind: 'message', role: 'user', messageId: uuid }
  expect(await get('')).toEqual({
    jsonrpc: '2.0',
    id: uuid,
    method: 'message/stream',
    params: { message: { ...message, parts: [{ kind: 'text', text: '' }] }, configuration: { blocking: true } },
  })
  expect(await get('?message=h%C3%A4llo+w%26&contextId=c%201&timeout=2.5&other=1')).toEqual({
    jsonrpc: '2.0',
    id: uuid,
    method: 'message/stream',
    params: {
      message: { ...message, parts: [{ kind: 'text', text: 'hällo w&' }], contextId: 'c 1' },
      contextId: 'c 1',
      configuration: { blocking: true, timeout: 2.5 },
    },
  })
  expect(agent.asked[0]?.headers).toMatchObject({ 'content-type': 'application/json', 'x-trace': 't' })
  for (const timeout of ['0', '-1', 'x', '', 'Infinity', 'NaN']) {
    const response = await fetch(`${host.base}/a2a/agent-1/stream?timeout=${timeout}`)
    expect(await response.json()).toMatchObject({ id: null, error: { code: -32602 } })
  }
  expect(await (await fetch(`${host.base}/a2a/Not-One/stream`)).json()).toMatchObject({ error: { code: -32600 } })
  expect(await (await fetch(`${host.base}/a2a/nobody/stream`)).json()).toMatchObject({ error: { code: -32002 } })
  agent.script = hang
  const late = await fetch(`${host.base}/a2a/agent-1/stream?timeout=0.1`)
  expect(await late.json()).toMatchObject({ id: null, error: { code: -32001 } })
})

test('A12, LIMIT-3 - streams: an open stream counts as a call in flight of its agent', async () => {
  const host = await openGateway({ agentMaxConcurrency: 2 })
  const agent = await startAgent(opens)
  await host.register('agent-1', agent.url)
  const controller = new AbortController()
  const open = await Promise.all([1, 2].map(() => post(host.base, 'agent-1', { signal: controller.signal })))
  expect(open.map(({ status }) => status)).toEqual([200, 200])
  expect([host.connector.inFlight('agent-1'), host.connector.openStreams()]).toEqual([2, 2])
  const busy = { error: { code: -32603, message: 'server busy: concurrency limit reached' } }
  expect(await host.call('agent-1')).toMatchObject(busy)
  expect(await (await post(host.base, 'agent-1')).json()).toMatchObject(busy)
  agent.script = (_asked, response) => json(response, '"ok"')
  controller.abort()
  await until(() => host.connector.inFlight('agent-1') === 0 && host.connector.openStreams() === 0)
  expect(await host.call('agent-1')).toMatchObject({ result: 'ok' })
})

test('A10 - streams: the agent is notified when a client disconnects, before its headers as well as after', async () => {
  const host = await openGateway()
  const agent = await startAgent(opens)
  await host.register('agent-1', agent.url)
  for (const script of [opens, hang]) {
    agent.asked.length = 0
    agent.script = (asked, response, request) =>
      asked.body.includes('stream_cancel') ? response.writeHead(202).end() : script(asked, response, request)
    const controller = new AbortController()
    const response = post(host.base, 'agent-1', { signal: controller.signal })
    response.catch(() => {})
    if (script === opens) await response
    await agent.reached(1)
    controller.abort()
    await until(() => agent.asked[0]?.socket.destroyed === true)
    await agent.reached(2)
    const [asked, cancelled] = agent.asked
    const streamId = asked?.headers['x-broker-stream-id']
    expect(JSON.parse(cancelled?.body ?? '')).toEqual({
      jsonrpc: '2.0',
      method: 'stream_cancel',
      params: { stream_id: streamId },
    })
    expect(cancelled?.headers).toMatchObject({ 'x-broker-stream-id': streamId, 'x-broker-caller-id': 'anonymous' })
    await until(() => host.connector.inFlight('agent-1') === 0 && host.connector.openStreams() === 0)
  }
  await until(() => host.finished.length === 2)
  expect(host.finished.map(({ status }) => status)).toEqual(['success', 'success'])
  expect(host.failures).toEqual([])
})

test('A11 - streams: a stream_cancel for a stream ends it wherever it is relayed, and reaches the agent like any call', async () => {
  const host = await openGateway()
  const agent = await startAgent(opens)
  await host.register('agent-1', agent.url)
  const response = await post(host.base, 'agent-1')
  const streamId = agent.asked[0]?.headers['x-broker-stream-id']
  agent.script = (_asked, answer) => json(answer, '"noted"')
  const cancelled: RpcAnswer = await host.call('agent-1', { stream_id: streamId }, 'stream_cancel')
  expect(cancelled).toMatchObject({ result: 'noted' })
  // Its client is told at once, and not when it misses the signs of life.
  const begin = performance.now()
  expect(await response.text()).toContain('event: task.error\n')
  expect(performance.now() - begin).toBeLessThan(10_000)
  await until(() => host.connector.inFlight('agent-1') === 0)
  // One that is none of ours, and one that is no id, are the agent's own business.
  for (const id of ['00000000-0000-0000-0000-000000000000', '../x', 7]) {
    expect(await host.call('agent-1', { stream_id: id }, 'stream_cancel')).toMatchObject({ result: 'noted' })
  }
})

test('A18 - streams: a shutdown ends them politely', async () => {
  const host = await openGateway()
  const agent = await startAgent(opens)
  await host.register('agent-1', agent.url)
  const response = await post(host.base, 'agent-1')
  const text = response.text()
  await host.connector.close(2_000)
  expect(await text).toContain('event: task.error\n')
  expect(host.connector.openStreams()).toBe(0)
  expect(host.connector.inFlight('agent-1')).toBe(0)
})

test('EVT-1, EVT-2 - streams: five kinds of events, each with its name, and an envelope of stream_id, type and payload', async () => {
  const host = await openGateway()
  const sent = [
    ['task.status', 'status_update'],
    ['message', 'anything'],
    ['task.artifact', 'artifact'],
  ] as const
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  for (const last of [
    ['task.done', 'done'],
    ['task.error', 'error'],
  ] as const) {
    const events = [...sent, last]
    agent.script = (_asked, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (const [i, [name, type]] of events.entries()) {
        response.write(`event: ${name}\ndata: {"type":"${type}","payload":{"n":${i}}}\n\n`)
      }
      // Nothing follows a terminal event.
      response.end('event: task.status\ndata: {"type":"status_update","payload":{"n":9}}\n\n')
    }
    const text = await (await post(host.base, 'agent-1')).text()
    const got = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, name, data = '']) => [name, JSON.parse(data)])
    const stream_id = agent.asked.at(-1)?.headers['x-broker-stream-id']
    expect(got).toEqual(events.map(([name, type], i) => [name, { stream_id, type, payload: { n: i } }]))
  }
})

test('EVT-3, LIMIT-4 - streams: one on which nothing happens ends after MaxSSEIdleSeconds', async () => {
  const host = await openGateway({ maxSseIdleSeconds: 0.3, keepAliveMs: 50 })
  const agent = await startAgent(opens)
  await host.register('agent-1', agent.url)
  const text = await (await post(host.base, 'agent-1')).text()
  expect(text).toContain('stream idle timeout')
  expect(text).toContain(': keepalive\n')
  await until(() => host.finished.length === 1)
  expect(host.finished).toMatchObject([{ status: 'error', errorCode: '-32001', method: 'message/stream' }])
})
