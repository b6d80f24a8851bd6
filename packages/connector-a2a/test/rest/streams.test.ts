import type { ServerResponse } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { always } from '../agents.ts'
import { called, openRest } from './host.ts'

const begin = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'A2A-Extensions': 'urn:e' })

const event = (member: string): string => `id: 7\ndata: {"jsonrpc":"2.0","id":"x",${member}}\n\n`

/** Sends these members of JSON-RPC responses as an event stream, and ends it. */
const sends =
  (...members: readonly string[]): Script =>
  (_asked, response) =>
    begin(response).end(members.map(event).join(''))

const RESULTS = [
  '{"task":{"id":"t","x":12345678901234567890,"x":1.0}}',
  '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"},"text":"\\u00e9 ä ☃"}}',
  '{"artifactUpdate":{}}',
]

/** Sends one event and leaves the stream open. */
const opens: Script = (_asked, response) => begin(response).write(event(`"result":${RESULTS[0]}`))

/** The events of a stream, without its comments. */
const eventsOf = (text: string): string[] =>
  text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'))

test.each([
  ['POST /message:stream', '{"message":{}}', 'SendStreamingMessage', { message: {} }],
  ['GET /tasks/t:subscribe', undefined, 'SubscribeToTask', { id: 't' }],
  ['POST /tasks/t:subscribe', undefined, 'SubscribeToTask', { id: 't' }],
  ['POST /acme/tasks/t:subscribe', 'null', 'SubscribeToTask', { tenant: 'acme', id: 't' }],
])('rest - streams: the events of %s are the results, byte for byte', async (request, body, method, params) => {
  const { host, agent, ask } = await openRest(sends(...RESULTS.map((result) => `"result":${result}`)))
  const headers = { accept: 'text/event-stream' }
  const { status, headers: given, text } = await ask(request, { headers, ...(body === undefined ? {} : { body }) })
  expect([status, given.get('content-type'), given.get('a2a-extensions')]).toEqual([200, 'text/event-stream', 'urn:e'])
  expect(eventsOf(text)).toEqual(RESULTS.map((result) => `data: ${result}`))
  expect(called(agent)).toMatchObject({ method, params })
  await until(() => host.finished.length === 1)
  expect(host.finished).toMatchObject([{ status: 'success' }])
})

const errorEvent = (code: number, status: string, reason: string): unknown =>
  expect.toSatisfy((text: string) => {
    expect(text).toMatch(/^event: error\ndata: \{/)
    const { error } = JSON.parse(text.slice(text.indexOf('{'))) as { error: object }
    expect(error).toMatchObject({
      code,
      status,
      message: expect.any(String),
      details: expect.arrayContaining([expect.objectContaining({ reason })]),
    })
    return true
  })

test("rest - streams: an agent's error in the middle is an event of its own", async () => {
  const error = '"error":{"code":-32001,"message":"nö","data":[{"@type":"x","n":12345678901234567890}]}'
  const { host, ask } = await openRest(sends(`"result":${RESULTS[0]}`, error))
  const { text } = await ask('POST /message:stream', { body: '{}' })
  expect(eventsOf(text)).toEqual([`data: ${RESULTS[0]}`, errorEvent(404, 'NOT_FOUND', 'TASK_NOT_FOUND')])
  expect(text).toContain('"message":"nö"')
  expect(text).toContain('"n":12345678901234567890')
  await until(() => host.finished.length === 1)
  expect(host.finished).toMatchObject([{ status: 'error', errorCode: 'agent' }])
})

test('rest - streams: one that breaks off, falls silent or says nonsense ends with an error', async () => {
  const first = event(`"result":${RESULTS[0]}`)
  const rows: [Script, number, string, string][] = [
    [(_, response) => begin(response).write(first, () => response.destroy()), 500, 'INTERNAL', 'STREAM_INTERRUPTED'],
    [(_, response) => begin(response).write(first), 504, 'DEADLINE_EXCEEDED', 'STREAM_IDLE'],
    [(_, response) => begin(response).end(`${first}data: x\n\n`), 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE'],
  ]
  for (const [script, code, status, reason] of rows) {
    const { ask } = await openRest(script, reason === 'STREAM_IDLE' ? { maxSseIdleSeconds: 1 } : {})
    const { text } = await ask('POST /message:stream', { body: '{}' })
    expect(eventsOf(text)).toEqual([`data: ${RESULTS[0]}`, errorEvent(code, status, reason)])
  }
})

test('rest - streams: one that cannot begin is refused with its status, a plain result is one event', async () => {
  const refused = await openRest(always('{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}'))
  const { status, headers, text } = await refused.ask('GET /tasks/t:subscribe')
  expect([status, headers.get('content-type')]).toEqual([404, 'application/json'])
  expect(text).toContain('TASK_NOT_FOUND')
  const plain = await openRest(always(`{"jsonrpc":"2.0","id":1,"result":${RESULTS[0]}}`))
  const answer = await plain.ask('POST /message:stream', { body: '{}' })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  expect(answer.text).toBe(`data: ${RESULTS[0]}\n\n`)
})

test('rest - streams: events of an A2A 0.3 agent are translated to 1.0, with the task first', async () => {
  const status = { state: 'input-required' }
  const update = { kind: 'status-update', taskId: 't', contextId: 'c', status, final: true }
  const error = '"error":{"code":-32603,"message":"m","data":"why"}'
  const { agent, ask } = await openRest(sends(`"result":${JSON.stringify(update)}`, error), {}, { wire: '0.3' })
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
  const { text } = await ask('POST /message:stream', { body: JSON.stringify({ message }) })
  const [task, statusUpdate, last, ...more] = eventsOf(text)
  expect(JSON.parse(task?.slice(6) ?? '')).toMatchObject({ task: { id: 't', contextId: 'c' } })
  expect(JSON.parse(statusUpdate?.slice(6) ?? '')).toEqual({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } },
  })
  expect(last).toEqual(errorEvent(500, 'INTERNAL', 'INTERNAL_ERROR'))
  expect(more).toEqual([])
  expect(called(agent)).toMatchObject({ method: 'message/stream' })
})

test('rest - streams: a client that leaves closes the connection to the agent, and cancels nothing', async () => {
  const { host, agent, send } = await openRest(opens)
  const leaving = new AbortController()
  const response = await send('POST /message:stream', { body: '{}', signal: leaving.signal })
  const reader = response.body?.getReader()
  await reader?.read()
  leaving.abort()
  await until(() => host.connector.inFlight('agent-1') === 0)
  await until(async () => (await agent.connections()) === 0)
  await until(() => host.finished.length === 1)
  expect(agent.asked).toHaveLength(1)
  expect(host.finished).toMatchObject([{ method: 'message/stream', status: 'success' }])
})

test('rest - streams: a shutdown ends them with an error', async () => {
  const { host, send } = await openRest(opens)
  const response = await send('POST /message:stream', { body: '{}' })
  const text = response.text()
  await until(() => host.connector.openStreams() === 1)
  await host.connector.close(0)
  expect(eventsOf(await text).at(-1)).toEqual(errorEvent(503, 'UNAVAILABLE', 'SHUTTING_DOWN'))
})
