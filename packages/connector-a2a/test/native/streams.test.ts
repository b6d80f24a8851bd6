import type { ServerResponse } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { always, hang, json, startAgent } from '../agents.ts'
import type { HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'

const V10 = { 'a2a-version': '1.0' }
const call = (method: string, id = '1'): string => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{}}`

const begin = (response: ServerResponse, headers = {}): ServerResponse =>
  response.writeHead(200, { 'Content-Type': 'text/event-stream', ...headers })

/** Opens a stream of one event and leaves it open. */
const opens: Script = (_asked, response) => begin(response).write('data: {"jsonrpc":"2.0","id":1,"result":{"n":1}}\n\n')

/** Sends this text as an event stream, and ends it. */
const sends =
  (text: string, headers = {}): Script =>
  (_asked, response) =>
    begin(response, headers).end(text)

async function openWithAgent(script: Script, options: HostOptions = {}) {
  const host = await openGateway(options)
  const agent = await startAgent(script)
  await host.register('agent-1', agent.url)
  const post = (method: string, { id = '1', path = 'agent-1', headers = {}, signal }: Asking = {}): Promise<Response> =>
    fetch(`${host.base}/a2a/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: call(method, id),
      ...(signal === undefined ? {} : { signal }),
    })
  return { host, agent, post }
}

interface Asking {
  readonly id?: string
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** The events of a stream, without its comments. */
const eventsOf = (text: string): string[] =>
  text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))

test('native - events of a stream pass verbatim, with the id of the caller and nothing else', async () => {
  const results = [
    '{"task":{"id":"t","x":12345678901234567890,"x":1.0}}',
    '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"},"text":"\\u00e9 ä ☃"}}',
    '{"artifactUpdate":{}}',
  ]
  const sent = results.map(
    (result) => `id: 7\nretry: 5\nevent: x\ndata: {"jsonrpc":"2.0","id":"other","result":${result}}\n\n`,
  )
  const { host, agent, post } = await openWithAgent(sends(`: hello\n\n${sent.join('')}`, { 'A2A-Extensions': 'urn:e' }))
  const asked: [string, Asking, string][] = [
    ['SendStreamingMessage', { headers: V10 }, 'message/stream'],
    ['SubscribeToTask', {}, 'tasks/resubscribe'],
    ['tasks/resubscribe', {}, 'tasks/resubscribe'],
    ['message/stream', { path: 'agent-1/v0.3' }, 'message/stream'],
    ['message/stream', { headers: { 'a2a-version': '0.3' } }, 'message/stream'],
  ]
  for (const [method, asking, label] of asked) {
    const response = await post(method, { ...asking, id: '"ä-9"' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(response.headers.get('a2a-extensions')).toBe('urn:e')
    const text = await response.text()
    expect(eventsOf(text)).toEqual(results.map((result) => `data: {"jsonrpc":"2.0","id":"ä-9","result":${result}}`))
    expect(text.endsWith(': end\n\n')).toBe(true)
    expect(agent.asked.at(-1)).toMatchObject({ body: call(method, '"ä-9"'), headers: { accept: 'text/event-stream' } })
    await until(() => host.finished.length === 1)
    expect(host.finished.pop()).toMatchObject({ method: label, status: 'success', agentId: 'agent-1' })
  }
  await until(() => host.connector.inFlight('agent-1') === 0)
  expect(host.connector.openStreams()).toBe(0)
})

test('native - a stream without a terminal event, or without any event, ends when the agent ends it', async () => {
  const interrupted = '{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}'
  const texts = [`data: {"jsonrpc":"2.0","id":1,"result":${interrupted}}\n\n`, '', ': only a comment\n\n']
  for (const text of texts) {
    const { post, host } = await openWithAgent(sends(text))
    const answer = await (await post('SendStreamingMessage')).text()
    expect(eventsOf(answer)).toEqual(eventsOf(text))
    await until(() => host.connector.inFlight('agent-1') === 0)
  }
})

test('native - an error event of the agent is relayed, and the stream continues until the agent ends it', async () => {
  const error = '{"code":-32001,"message":"gone","data":[]}'
  const text = `data: {"jsonrpc":"2.0","id":1,"error":${error}}\n\n`
  const { post, host } = await openWithAgent(sends(`${text}data: {"jsonrpc":"2.0","id":1,"result":2}\n\n${text}`))
  const answer = await (await post('SendStreamingMessage', { id: '"a"' })).text()
  expect(eventsOf(answer)).toEqual([
    `data: {"jsonrpc":"2.0","id":"a","error":${error}}`,
    'data: {"jsonrpc":"2.0","id":"a","result":2}',
    `data: {"jsonrpc":"2.0","id":"a","error":${error}}`,
  ])
  await until(() => host.finished.length === 1)
  expect(host.finished).toMatchObject([{ status: 'error', errorCode: 'agent' }])
})

test('native - a client that leaves closes the stream of the agent, and cancels nothing', async () => {
  for (const script of [opens, hang]) {
    const { host, agent, post } = await openWithAgent(script)
    const controller = new AbortController()
    const response = post('SendStreamingMessage', { signal: controller.signal })
    response.catch(() => {})
    if (script === opens) await response
    await agent.reached(1)
    controller.abort()
    await until(() => agent.asked[0]?.socket.destroyed === true)
    await until(() => host.connector.inFlight('agent-1') === 0 && host.connector.openStreams() === 0)
    expect(agent.asked).toHaveLength(1)
    await until(() => host.finished.length === 1)
    expect(host.finished[0]?.status).toBe('success')
    expect(host.failures).toEqual([])
  }
})

test('native - a failure in the middle of a stream is one error event, and the stream closes', async () => {
  const first = 'data: {"jsonrpc":"2.0","id":1,"result":{"n":1}}\n\n'
  const tooLarge = `data: {"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(20_000)}"}\n\n`
  const rows: [Script, string, number, string][] = [
    [
      (_asked, response) => {
        begin(response).write(first, () => response.destroy())
      },
      'STREAM_INTERRUPTED',
      -32603,
      'signalbox',
    ],
    [opens, 'STREAM_IDLE', -32603, 'signalbox'],
    [sends(`${first}${tooLarge}`), 'RESPONSE_TOO_LARGE', -32603, 'signalbox'],
    [sends(`${first}data: not json\n\n`), 'INVALID_AGENT_RESPONSE', -32006, 'a2a-protocol.org'],
    [sends(`${first}data: {"result":1}\n\n`), 'INVALID_AGENT_RESPONSE', -32006, 'a2a-protocol.org'],
    [
      sends(`${first}data: {"jsonrpc":"2.0","id":1,"error":7}\n\n`),
      'INVALID_AGENT_RESPONSE',
      -32006,
      'a2a-protocol.org',
    ],
  ]
  for (const [script, reason, code, domain] of rows) {
    const idle = reason === 'STREAM_IDLE' ? { maxSseIdleSeconds: 1 } : {}
    const { host, agent, post } = await openWithAgent(script, { ...idle, agentMaxResponseBytes: 10_000 })
    const events = eventsOf(await (await post('SendStreamingMessage', { id: '5' })).text())
    expect([reason, events.length]).toEqual([reason, 2])
    expect(JSON.parse(events[1]?.slice('data: '.length) ?? '')).toMatchObject({
      jsonrpc: '2.0',
      id: 5,
      error: { code, data: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain }] },
    })
    await until(() => host.finished.length === 1 && host.connector.inFlight('agent-1') === 0)
    expect(host.finished).toMatchObject([{ status: 'error', errorCode: String(code) }])
    expect(agent.asked).toHaveLength(1)
  }
})

test('native - a shutdown ends a stream with an error event', async () => {
  const { host, post } = await openWithAgent(opens)
  const text = (await post('SendStreamingMessage')).text()
  await until(() => host.connector.openStreams() === 1)
  await host.connector.close(2_000)
  expect(eventsOf(await text).at(-1)).toContain('"reason":"SHUTTING_DOWN"')
  expect(host.connector.inFlight('agent-1')).toBe(0)
})

test('native - a stream is kept alive with comments', async () => {
  const { post } = await openWithAgent(opens, { keepAliveMs: 30, maxSseIdleSeconds: 0.5 })
  expect(await (await post('SendStreamingMessage')).text()).toContain(': keepalive\n')
})

test('native - a plain answer to a request for a stream: an error is JSON in 1.0 and an event in 0.3, a result is an event', async () => {
  const error = '{"code":-32601,"message":"no",\n"data":[1.0]}'
  const rows: [method: string, path: string, sent: string, type: string, text: string][] = [
    [
      'SendStreamingMessage',
      'agent-1',
      `"error":${error}`,
      'application/json',
      `{"jsonrpc":"2.0","id":3,"error":${error}}`,
    ],
    [
      'message/stream',
      'agent-1/v0.3',
      `"error":${error}`,
      'text/event-stream',
      `data: {"jsonrpc":"2.0","id":3,"error":${error.replace('\n', ' ')}}\n\n`,
    ],
    [
      'SendStreamingMessage',
      'agent-1',
      '"result":{"task":\n1.0}',
      'text/event-stream',
      'data: {"jsonrpc":"2.0","id":3,"result":{"task": 1.0}}\n\n',
    ],
    [
      'message/stream',
      'agent-1/v0.3',
      '"result":{"kind":"task"}',
      'text/event-stream',
      'data: {"jsonrpc":"2.0","id":3,"result":{"kind":"task"}}\n\n',
    ],
  ]
  for (const [method, path, sent, type, text] of rows) {
    const { post, host } = await openWithAgent(always(`{"jsonrpc":"2.0","id":1,${sent}}`))
    const response = await post(method, { path, id: '3' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(await response.text()).toBe(text)
    expect(host.connector.inFlight('agent-1')).toBe(0)
  }
})

test('native - a stream whose id is too long is refused before the agent is asked', async () => {
  const { post, agent } = await openWithAgent(opens)
  const response = await post('SendStreamingMessage', { id: `"${'x'.repeat(2_000)}"` })
  expect(await response.json()).toMatchObject({ error: { code: -32600 } })
  expect(agent.asked).toHaveLength(0)
})

test('native - an agent that answers unary calls with a stream gives INVALID_AGENT_RESPONSE', async () => {
  const { post } = await openWithAgent(opens)
  const response = await post('SendMessage')
  expect(await response.json()).toMatchObject({
    error: { code: -32006, data: [{ reason: 'INVALID_AGENT_RESPONSE', metadata: { httpStatus: '200' } }] },
  })
})

test('native - streams of the dialect are unaffected', async () => {
  const { post } = await openWithAgent((asked, response) =>
    asked.headers.accept === 'text/event-stream'
      ? void sends('data: {"jsonrpc":"2.0","id":1,"result":{"kind":"message"}}\n\n')(asked, response, response.req)
      : json(response, '{}'),
  )
  const text = await (await post('message/stream')).text()
  expect(text).toContain('event: task.done\n')
})
