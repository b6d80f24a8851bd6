import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { propagation, ROOT_CONTEXT } from '@opentelemetry/api'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { connect } from '@signalbox/client'
import { openTelemetry } from '@signalbox/client/opentelemetry'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import type { ExportedSpan, OtlpReceiver } from '@signalbox/testkit/otlp-receiver'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { register } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { serveNode, startNats } from './support/nodes.ts'
import { openSdkAgent } from './support/sdk-agent.ts'
import { violations } from './support/span-rules.ts'
import type { Shape } from './support/telemetry.ts'
import { activeHeaders, activeTraceId, inSpan, openOtlp, programs, serveTraced, shapeOf } from './support/telemetry.ts'

/** Sends a message within the active span. */
type Send = (url: string) => Promise<unknown>

/** Calls a tool with an official client. */
async function callOfficial(url: string, name: string, args: Record<string, unknown>): Promise<void> {
  const client = new Client({ name: 'shop', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
  onTestFinished(() => client.close())
  const result = await client.callTool({ name, arguments: args, _meta: activeHeaders() })
  expect(result.isError).not.toBe(true)
}

/** As {@link callOfficial}, with the revision 2025-11-25. */
async function callFirst(url: string, name: string, args: Record<string, unknown>): Promise<void> {
  const client = new FirstClient({ name: 'shop', version: '1' })
  await client.connect(new FirstTransport(new URL(`${url}/mcp`)))
  onTestFinished(() => client.close())
  const result = await client.callTool({ name, arguments: args, _meta: activeHeaders() })
  expect(result.isError).not.toBe(true)
}

const JOB = { channel: 'jobs', body: 'hello' }

async function sendCloudEvent(url: string): Promise<void> {
  const event = { specversion: '1.0', id: '1', source: '/shop', type: 'job', subject: 'jobs', data: 'hello' }
  const headers = { ...activeHeaders(), 'content-type': 'application/cloudevents+json' }
  const response = await fetch(`${url}/ce/queue/send`, { method: 'POST', headers, body: JSON.stringify(event) })
  expect(response.status).toBe(202)
}

/** Calls the agent from the handler of a worker. */
type Ask = (url: string) => Promise<unknown>

const askByLibrary: Ask = async (url) => {
  const sb = connect(url, openTelemetry())
  onTestFinished(() => sb.close())
  expect(await sb.agents('shouting').send('hello')).toMatchObject({ text: 'HELLO' })
}

/**
 * Sends a job in a span of a program. A worker at another node calls an agent for it. Returns the trace after all
 * programs and servers have ended.
 */
async function runJob(otlp: OtlpReceiver, urls: readonly [string, string], send: Send, ask: Ask): Promise<string> {
  const tracerOf = programs(otlp)
  const agentTracer = tracerOf('agent')
  const agent = await openSdkAgent({
    guard: ({ headers, method }) => {
      if (method !== 'POST') return false
      agentTracer.startSpan('answer', {}, propagation.extract(ROOT_CONTEXT, headers)).end()
      return false
    },
  })
  await register(urls[1], { agent_id: 'shouting', name: 'Shouting', url: agent.url })
  const worker = connect(urls[1], { ...openTelemetry(), onError: () => {} })
  const workerTracer = tracerOf('worker')
  const handled = new Promise<void>((resolve) => {
    worker.queue('jobs').work(() =>
      inSpan(workerTracer, 'handle', async () => {
        await ask(urls[1])
        resolve()
      }),
    )
  })
  const traceId = await inSpan(tracerOf('shop'), 'order', async () => {
    await send(urls[0])
    return activeTraceId()
  })
  await handled
  await worker.close()
  return traceId
}

function expectOneTrace(shape: Shape, sent: readonly string[], asked: readonly string[]): void {
  expect(shape.roots).toEqual(['shop: order'])
  expect(shape.orphans).toEqual([])
  const send = ['shop: order', ...sent, 'send']
  expect(shape.path('process')).toEqual([...send, 'process'])
  expect(shape.path('agent: answer')).toEqual([
    ...send,
    'worker: handle',
    ...asked,
    'invoke_agent shouting',
    'agent: answer',
  ])
  expect(shape.path('ack')).toEqual([...send, 'POST /ce/queue/ack', 'ack'])
  const process = shape.spans.find(({ name }) => name === 'process')
  expect(process).toMatchObject({ kind: 'consumer', links: [{}] })
}

/** The other traces that may be there: the polls of the worker, and the requests with which clients begin and end. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'POST /agents/register',
  'POST /ce/queue/receive',
  'receive',
  'initialize',
  'notifications/initialized',
  'server/discover',
  'tools/list',
  'GET',
  'DELETE',
])

type Way = readonly [name: string, send: Send, sent: readonly string[], ask: Ask, asked: readonly string[]]

const BY_LIBRARY = [askByLibrary, ['SendMessage']] as const

const WAYS: readonly Way[] = [
  [
    'the official MCP client (2026-07-28) and agent_send',
    (url) => callOfficial(url, 'queue_send', JOB),
    ['tools/call queue_send'],
    (url) => callOfficial(url, 'agent_send', { agent_id: 'shouting', message: 'hello' }),
    ['tools/call agent_send'],
  ],
  [
    'the official MCP client (2025-11-25)',
    (url) => callFirst(url, 'queue_send', JOB),
    ['tools/call queue_send'],
    ...BY_LIBRARY,
  ],
  ['a CloudEvent', sendCloudEvent, ['POST /ce/queue/send'], ...BY_LIBRARY],
]

test.each(WAYS)(
  'telemetry - there is one trace from a program through a queue and a worker to an agent, with %s',
  async (_name, send, sent, ask, asked) => {
    const { server, otlp } = await serveTraced()
    const { url } = server.http
    const traceId = await runJob(otlp, [url, url], send, ask)
    await server.close()
    const shape = shapeOf(otlp.spans, traceId)
    expectOneTrace(shape, sent, asked)
    expect(shape.elsewhere.filter((name) => !ELSEWHERE.has(name))).toEqual([])
    expect(violations(otlp.spans)).toEqual([])
  },
)

test.skipIf(NATS_SERVER === undefined)(
  'telemetry - a trace continues at another node of a cluster, where the worker and the agent are',
  async () => {
    const { otlp, env } = await openOtlp()
    const nats = await startNats()
    const first = await serveNode(nats, {}, env)
    const second = await serveNode(nats, {}, env)
    const sent = ['tools/call queue_send']
    const traceId = await runJob(
      otlp,
      [first.http.url, second.http.url],
      (url) => callOfficial(url, 'queue_send', JOB),
      askByLibrary,
    )
    await Promise.all([first.close(), second.close()])
    const shape = shapeOf(otlp.spans, traceId)
    expectOneTrace(shape, sent, ['SendMessage'])
    const nodeOf = (name: string): unknown =>
      shape.spans.find((span) => span.name === name)?.resource['service.instance.id']?.value
    expect(nodeOf('send')).not.toBe(nodeOf('process'))
    expect(violations(otlp.spans)).toEqual([])
  },
)

const FASTMCP = process.env['FASTMCP_PYTHON']

/** Calls tools with FastMCP, outside of every span unless there is an active one. */
async function callFastMcp(url: string, ...calls: readonly (readonly [tool: string, args: object])[]): Promise<void> {
  const { traceparent } = activeHeaders()
  const script = fileURLToPath(new URL('../../../tools/telemetry/fastmcp_client.py', import.meta.url))
  const args = calls.flatMap(([tool, given]) => [tool, JSON.stringify(given)])
  const env = { PATH: process.env['PATH'], ...(traceparent === undefined ? {} : { TRACEPARENT: traceparent }) }
  await promisify(execFile)(FASTMCP ?? '', [script, url, ...args], { env })
}

test.skipIf(FASTMCP === undefined)(
  'telemetry - there is one trace from FastMCP through a queue and a worker to an agent',
  { timeout: 60_000 },
  async () => {
    const { server, otlp } = await serveTraced()
    const { url } = server.http
    const traceId = await runJob(otlp, [url, url], () => callFastMcp(url, ['queue_send', JOB]), askByLibrary)
    await server.close()
    const shape = shapeOf(otlp.spans, traceId)
    expectOneTrace(shape, ['tools/call queue_send'], ['SendMessage'])
    expect(shape.elsewhere.filter((name) => !ELSEWHERE.has(name))).toEqual([])
    expect(violations(otlp.spans)).toEqual([])
  },
)

const RECEIVE = { channel: 'jobs', max_messages: 1 }
const LEASE = { ...RECEIVE, lease_seconds: 30 }

/** Receives a message and acknowledges it, with requests that carry no context. */
async function pollPlainly(url: string): Promise<void> {
  const { text } = await callTool(url, 'queue_receive', LEASE)
  const [{ receipt } = { receipt: '' }] = JSON.parse(text) as readonly { readonly receipt: string }[]
  await callTool(url, 'queue_ack', { receipts: [receipt] })
}

const POLLS = [
  ['plain MCP', pollPlainly],
  ['FastMCP', (url: string) => callFastMcp(url, ['queue_receive', LEASE], ['queue_ack', { receipts: ['$receipt'] }])],
] as const

test.each(POLLS.filter(([name]) => name !== 'FastMCP' || FASTMCP !== undefined))(
  'telemetry - a worker that forwards no context is in the trace of the sender, with %s',
  { timeout: 60_000 },
  async (_name, poll) => {
    const { server, otlp } = await serveTraced({ connectors: { mcp: { leases: true } } })
    const { url } = server.http
    const traceId = await inSpan(programs(otlp)('shop'), 'order', async () => {
      await callOfficial(url, 'queue_send', JOB)
      return activeTraceId()
    })
    await poll(url)
    await server.close()
    const shape = shapeOf(otlp.spans, traceId)
    expect(shape.path('process')).toEqual(['shop: order', 'tools/call queue_send', 'send', 'process'])
    expect([shape.roots, shape.orphans]).toEqual([['shop: order'], []])
    const named = (name: string): ExportedSpan | undefined => otlp.spans.find((span) => span.name === name)
    const [send, receive, process, ack] = ['send', 'receive', 'process', 'ack'].map(named)
    const id = send?.attributes['messaging.message.id']
    expect(receive?.traceId).not.toBe(traceId)
    expect(receive?.links).toMatchObject([
      { traceId, spanId: send?.spanId, attributes: { 'messaging.message.id': id } },
    ])
    expect(process?.links).toMatchObject([{ traceId: receive?.traceId, spanId: receive?.spanId }])
    expect(ack?.links).toMatchObject([{ traceId, spanId: process?.spanId }])
    expect(process?.end).toBeGreaterThan(ack?.start ?? Infinity)
    expect(violations(otlp.spans)).toEqual([])
  },
)

test('telemetry - a responder and a pull agent of the client library are in the traces of their callers', async () => {
  const { server, otlp } = await serveTraced()
  const tracerOf = programs(otlp)
  const [shop, worker] = [tracerOf('shop'), tracerOf('worker')]
  const sb = connect(server.http.url, { ...openTelemetry(), onError: () => {} })
  onTestFinished(() => sb.close())
  await sb.answer('queries', 'prices', () => inSpan(worker, 'price', async () => 7)).ready
  sb.agents.work('pulled', () => inSpan(worker, 'work', async () => 'done'), { card: {} })
  await until(async () => (await sb.agents.list()).some((card) => card['agent_id'] === 'pulled'))
  const asked = await inSpan(shop, 'ask', async () => {
    expect(await sb.query('prices', 'tea')).toBe(7)
    return activeTraceId()
  })
  const called = await inSpan(shop, 'call', async () => {
    expect(await sb.agents('pulled').send('go')).toMatchObject({ text: 'done' })
    return activeTraceId()
  })
  await sb.close()
  await server.close()
  const query = shapeOf(otlp.spans, asked)
  expect([query.roots, query.orphans]).toEqual([['shop: ask'], []])
  const send = ['shop: ask', 'POST /ce/send/query', 'send']
  expect(query.path('process')).toEqual([...send, 'process'])
  expect(query.path('worker: price')).toEqual([...send, 'worker: price'])
  expect(query.path('POST /ce/send/response')).toEqual([...send, 'POST /ce/send/response'])
  const agent = shapeOf(otlp.spans, called)
  expect([agent.roots, agent.orphans]).toEqual([['shop: call'], []])
  expect(agent.path('worker: work')).toEqual(['shop: call', 'SendMessage', 'worker: work'])
  expect(violations(otlp.spans)).toEqual([])
})
