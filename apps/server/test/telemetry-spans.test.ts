import { join } from 'node:path'

import { connect } from '@signalbox/client'
import type { ExportedSpan, OtlpReceiver } from '@signalbox/testkit/otlp-receiver'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, onTestFinished, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import { postJson, register } from './support/agent.ts'
import { callTool, rpc } from './support/mcp.ts'
import { openSdkAgent } from './support/sdk-agent.ts'
import { violations } from './support/span-rules.ts'
import { serveTraced } from './support/telemetry.ts'
import { issuer, trusting } from './support/tokens.ts'

const TRACE = 'a'.repeat(32)
const CALLER = 'b'.repeat(16)
const traceparent = `00-${TRACE}-${CALLER}-01`

/** Sends a message to a queue with a tool. */
async function send(
  server: RunningServer,
  channel: string,
  more: object = {},
  headers = { traceparent },
): Promise<void> {
  expect(await callTool(server.http.url, 'queue_send', { channel, body: 'x', ...more }, headers)).toMatchObject({
    isError: false,
  })
}

/** Closes the server, checks each span against the rules, and returns the spans. */
async function spansAfter(server: RunningServer, otlp: OtlpReceiver): Promise<readonly ExportedSpan[]> {
  await server.close()
  expect(violations(otlp.spans)).toEqual([])
  return otlp.spans
}

function called(spans: readonly ExportedSpan[], name: string): readonly ExportedSpan[] {
  return spans.filter((span) => span.name === name)
}

function values({ attributes }: ExportedSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(attributes).map(([name, { value }]) => [name, value]))
}

test('telemetry - a webhook attempt is in the trace of its message, and a repeat counts the attempts before it', async () => {
  const webhooks = { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] }
  const { server, otlp } = await serveTraced({ webhooks })
  const endpoint = await openReceiver()
  endpoint.reply = (response, received) =>
    (endpoint.received.length === 1 ? answer(503, { 'retry-after': '0' }) : answer(200))(response, received)
  const subscription = { sink: `${endpoint.url}?key=1`, config: { channel: 'orders' } }
  expect((await postJson(`${server.http.url}/ce/subscriptions`, subscription)).status).toBe(201)
  const event = { specversion: '1.0', id: '1', source: '/shop', type: 'paid', subject: 'orders', data: 1 }
  await postJson(`${server.http.url}/ce/send/event-store`, event, {
    'content-type': 'application/cloudevents+json',
    traceparent,
  })
  await until(() => endpoint.received.length === 2)
  const spans = await spansAfter(server, otlp)
  const [sent] = called(spans, 'send')
  const attempts = called(spans, 'POST')
  const context = { traceId: TRACE, parentSpanId: sent?.spanId, kind: 'client' }
  expect(attempts).toMatchObject([
    { ...context, status: 'error' },
    { ...context, status: 'unset' },
  ])
  const origin = new URL(endpoint.url).origin
  expect(attempts.map(values)).toMatchObject([
    { 'url.full': `${origin}/REDACTED`, 'http.response.status_code': 503, 'error.type': '503' },
    { 'url.full': `${origin}/REDACTED`, 'http.response.status_code': 200, 'http.request.resend_count': 1 },
  ])
  expect(endpoint.received.map(({ headers }) => headers['traceparent'])).toEqual(
    attempts.map(({ spanId }) => `00-${TRACE}-${spanId}-01`),
  )
  const [first, second] = endpoint.received.map(({ body }) => JSON.parse(body) as { readonly traceparent: string })
  expect(first?.traceparent).toBe(`00-${TRACE}-${sent?.spanId}-01`)
  expect(second?.traceparent).toBe(first?.traceparent)
})

test('telemetry - a webhook attempt with several messages is a new trace with links to them', async () => {
  const webhooks = { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] }
  const { server, otlp } = await serveTraced({ webhooks })
  for (const body of ['1', '2', '3']) {
    await callTool(server.http.url, 'events_store_publish', { channel: 'orders', body }, { traceparent })
  }
  const endpoint = await openReceiver()
  const config = { channel: 'orders', mode: 'batch', start: 'first' }
  expect((await postJson(`${server.http.url}/ce/subscriptions`, { sink: endpoint.url, config })).status).toBe(201)
  await until(() => endpoint.bodies.flatMap((body) => JSON.parse(body) as unknown[]).length === 3)
  const spans = await spansAfter(server, otlp)
  const batches = called(spans, 'POST').filter(({ links }) => links.length > 0)
  expect(batches.flatMap(({ links }) => links.map(({ spanId }) => spanId))).toEqual(
    called(spans, 'send').map(({ spanId }) => spanId),
  )
  for (const { parentSpanId, traceId } of batches) expect([parentSpanId, traceId === TRACE]).toEqual([undefined, false])
})

test('telemetry - a schedule sends in a new trace, which the receiver of its message joins', async () => {
  const { server, otlp } = await serveTraced()
  const act = (action: string, body: object) => postJson(`${server.api.url}/api/actions/${action}`, body)
  const schedule = {
    id: 'report',
    cron: '30 9 * * MON',
    target: { type: 'queues', channel: 'reports' },
    message: { body: 'go' },
  }
  expect((await act('set_schedule', { ...schedule, revision: 0 })).status).toBe(200)
  expect((await act('trigger_schedule', { id: 'report' })).status).toBe(200)
  await callTool(server.http.url, 'queue_receive', { channel: 'reports', max_messages: 1 })
  const spans = await spansAfter(server, otlp)
  const [sent] = called(spans, 'send')
  expect(sent).toMatchObject({ kind: 'producer', parentSpanId: undefined })
  expect(sent && values(sent)).toMatchObject({ 'signalbox.schedule.id': 'report' })
  expect(called(spans, 'process')).toMatchObject([{ traceId: sent?.traceId, parentSpanId: sent?.spanId }])
})

test('telemetry - a routing copy is sent in a new trace with a link, and its receiver is in the trace of the sender', async () => {
  const file = testFile(JSON.stringify([{ key: 'orders', routes: 'queues:copies' }]))
  const { server, otlp } = await serveTraced({ routing: { file } })
  await send(server, 'orders')
  await callTool(server.http.url, 'queue_receive', { channel: 'copies', max_messages: 1 })
  const spans = await spansAfter(server, otlp)
  const [sent, copy] = ['producer', 'client'].map((kind) => called(spans, 'send').find((span) => span.kind === kind))
  expect(sent).toMatchObject({ traceId: TRACE, links: [] })
  expect(copy).toMatchObject({ parentSpanId: undefined, links: [{ traceId: TRACE, spanId: sent?.spanId }] })
  expect(copy?.traceId).not.toBe(TRACE)
  expect(called(spans, 'process')).toMatchObject([{ traceId: TRACE, parentSpanId: sent?.spanId }])
})

test('telemetry - a message that brings its context keeps it, and its send is linked to it', async () => {
  const { server, otlp } = await serveTraced()
  const own = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`
  await send(server, 'jobs', { tags: { traceparent: own } })
  const sb = connect(server.http.url)
  onTestFinished(() => sb.close())
  const [message] = await sb.queue('jobs').peek()
  expect(message?.trace).toEqual({ traceparent: own })
  const [sent] = called(await spansAfter(server, otlp), 'send')
  expect(sent).toMatchObject({
    kind: 'client',
    traceId: TRACE,
    links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }],
  })
})

test('telemetry - a rejected message and its dead letter are processed in the trace of the sender', async () => {
  const { server, otlp } = await serveTraced()
  const sb = connect(server.http.url)
  onTestFinished(() => sb.close())
  await send(server, 'jobs', { max_receive_count: 1, dead_letter_queue: 'failed' })
  for await (const message of sb.queue('jobs').receive()) expect(await message.nack()).toBe(true)
  for await (const message of sb.queue('failed').receive()) expect(await message.ack()).toBe(true)
  const spans = await spansAfter(server, otlp)
  const [sent] = called(spans, 'send')
  const [rejected, dead] = called(spans, 'process')
  for (const span of [rejected, dead])
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: sent?.spanId, status: 'unset' })
  expect([rejected, dead].map((span) => span && values(span))).toMatchObject([
    { 'messaging.destination.name': 'jobs', 'error.type': 'nack' },
    { 'messaging.destination.name': 'failed' },
  ])
  expect(dead && values(dead)).not.toHaveProperty('error.type')
  expect(called(spans, 'nack')).toMatchObject([{ links: [{ spanId: rejected?.spanId }] }])
  expect(called(spans, 'ack')).toMatchObject([{ links: [{ spanId: dead?.spanId }] }])
})

test('telemetry - the span of a delivery ends with its lease', async () => {
  const { server, otlp } = await serveTraced()
  const sb = connect(server.http.url)
  onTestFinished(() => sb.close())
  await send(server, 'jobs')
  for await (const message of sb.queue('jobs').receive({ lease: '1s' })) expect(await message.extend('2s')).toBe(true)
  const spans = await otlp.until((all) => called(all, 'process').length > 0)
  const [lapsed] = called(spans, 'process')
  expect(lapsed).toMatchObject({ status: 'error' })
  expect(lapsed && values(lapsed)).toMatchObject({ 'error.type': 'lease_expired' })
  const [extend] = called(spans, 'extend')
  expect(Math.round(((lapsed?.end ?? 0) - (extend?.end ?? 0)) / 100)).toBe(20)
  await spansAfter(server, otlp)
})

test('telemetry - a stream of an agent is one span until its end, with the time of the first byte', async () => {
  const { server, otlp } = await serveTraced()
  const agent = await openSdkAgent()
  await register(server.http.url, { agent_id: 'shouting', name: 'Shouting', url: agent.url })
  const sb = connect(server.http.url, { traceHeaders: () => ({ traceparent }) })
  onTestFinished(() => sb.close())
  const states: (string | undefined)[] = []
  for await (const { state } of sb.agents('shouting').stream('hello', { contextId: 'talk-1' })) states.push(state)
  expect(states.at(-1)).toBe('completed')
  const spans = await spansAfter(server, otlp)
  const [request] = called(spans, 'SendStreamingMessage')
  const [call, ...others] = called(spans, 'invoke_agent shouting')
  expect(others).toEqual([])
  expect(request).toMatchObject({ kind: 'server', traceId: TRACE, parentSpanId: CALLER })
  expect(call).toMatchObject({ kind: 'client', parentSpanId: request?.spanId, events: ['first_byte'], status: 'unset' })
  expect(call && values(call)).toMatchObject({
    'gen_ai.agent.id': 'shouting',
    'gen_ai.conversation.id': 'talk-1',
    'http.response.status_code': 200,
    'server.port': Number(new URL(agent.url).port),
  })
  expect(agent.calls().map(({ headers }) => headers['traceparent'])).toEqual([`00-${TRACE}-${call?.spanId}-01`])
})

test('telemetry - an agent that cannot be reached is a failed call', async () => {
  const { server, otlp } = await serveTraced()
  const agent = await openSdkAgent()
  await register(server.http.url, { agent_id: 'gone', name: 'Gone', url: agent.url })
  agent.stop()
  await postJson(
    `${server.http.url}/a2a/gone`,
    { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} },
    { traceparent },
  )
  const [call] = called(await spansAfter(server, otlp), 'invoke_agent gone')
  expect(call).toMatchObject({ status: 'error', traceId: TRACE })
  expect(call && values(call)['error.type']).toEqual(expect.any(String))
})

/** The name, the status, the error and the HTTP status of a span. */
function outcome(span: ExportedSpan): readonly unknown[] {
  const { 'error.type': error, 'http.response.status_code': http } = values(span)
  return [span.name, span.status, error, http]
}

test('telemetry - a request that is refused, or cannot be executed, is a span with its error', async () => {
  const keys = issuer()
  const { server, otlp } = await serveTraced(trusting(keys))
  const { url } = server.http
  const bearer = { authorization: await keys.bearer('alice'), traceparent }
  await rpc(url, 'tools/call', { name: 'queue_send', arguments: {} }, { traceparent })
  await postJson(`${url}/ce/queue/send?channel=q`, {}, { traceparent })
  await fetch(`${url}/agents`, { headers: { traceparent } })
  await rpc(url, 'tools/call', { name: 'no_such_tool', arguments: {} }, bearer)
  await rpc(url, 'tools/call', { name: 'queue_send', arguments: {} }, bearer)
  await rpc(url, 'tools/call', { name: 'queue_send', arguments: { channel: '*', body: 'x' } }, bearer)
  await fetch(`${url}/agents/nobody`, { headers: bearer })
  const spans = await spansAfter(server, otlp)
  expect(spans.filter(({ traceId }) => traceId !== TRACE)).toEqual([])
  expect(spans.map(outcome)).toEqual([
    ['POST', 'error', '-32010', 200],
    ['POST /ce/queue/send', 'unset', undefined, 401],
    ['GET /agents', 'unset', undefined, 401],
    ['tools/call', 'unset', '-32602', 200],
    ['tools/call queue_send', 'unset', '-32602', 200],
    ['tools/call queue_send', 'unset', '-32602', 200],
    ['GET /agents/{agent_id}', 'unset', undefined, 404],
  ])
})

test('telemetry - a request over the limit of its caller is a span with the status 429', async () => {
  const keys = issuer()
  const { server, otlp } = await serveTraced({ ...trusting(keys), limits: { caller: { requestsPerSecond: 1 } } })
  const headers = { authorization: await keys.bearer('alice'), traceparent }
  const ask = async (): Promise<number> => (await fetch(`${server.http.url}/agents`, { headers })).status
  const statuses = await Promise.all([ask(), ask(), ask(), ask(), ask()])
  expect(statuses).toContain(429)
  const spans = await spansAfter(server, otlp)
  const recorded = spans.map((span) => Number(values(span)['http.response.status_code']))
  expect(recorded.toSorted((a, b) => a - b)).toEqual(statuses.toSorted((a, b) => a - b))
  for (const span of spans) expect(span).toMatchObject({ name: 'GET /agents', traceId: TRACE, status: 'unset' })
})

test('telemetry - an unknown path and an unknown method are spans without the text of the path', async () => {
  const { server, otlp } = await serveTraced()
  const { url } = server.http
  await fetch(`${url}/agents/some/secret/path`)
  await fetch(`${url}/ce/secret?channel=secret`)
  await fetch(`${url}/ce/queue/send?channel=secret`)
  await rpc(url, 'secret/method', {})
  await postJson(`${url}/a2a/nobody`, { jsonrpc: '2.0', id: 1, method: 'secret/method', params: {} })
  const spans = await spansAfter(server, otlp)
  expect(otlp.bytes.includes('secret')).toBe(false)
  expect(spans.map(({ name, status }) => [name, status])).toEqual([
    ['GET', 'unset'],
    ['GET', 'unset'],
    ['GET /ce/queue/send', 'unset'],
    ['POST', 'unset'],
    ['POST', 'error'],
  ])
})
