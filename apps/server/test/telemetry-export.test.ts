import { randomUUID } from 'node:crypto'
import { join } from 'node:path'

import { connect } from '@signalbox/client'
import { freePort } from '@signalbox/testkit/free-port'
import { OtlpReceiver } from '@signalbox/testkit/otlp-receiver'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, onTestFinished, test, vi } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { postJson, register } from './support/agent.ts'
import { callTool, rpc } from './support/mcp.ts'
import { openSdkAgent } from './support/sdk-agent.ts'
import { serve, serveLogged } from './support/server.ts'
import { violations } from './support/span-rules.ts'
import type { Protocol } from './support/telemetry.ts'
import { openOtlp, serveTraced } from './support/telemetry.ts'
import { issuer, trusting } from './support/tokens.ts'

const TRACE = 'a'.repeat(32)
const SPAN = 'b'.repeat(16)
const sampled = { traceparent: `00-${TRACE}-${SPAN}-01` }
const unsampled = { traceparent: `00-${TRACE}-${SPAN}-00` }

const PROTOCOLS: readonly (readonly [Protocol, string])[] = [
  ['http/protobuf', 'application/x-protobuf'],
  ['http/json', 'application/json'],
]

test.each(PROTOCOLS)('telemetry - %s is exported with the standard headers and resource', async (protocol, type) => {
  const { server, otlp } = await serveTraced(
    {},
    {
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc',
      OTEL_SERVICE_NAME: 'broker',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    },
  )
  await callTool(server.http.url, 'queue_send', { channel: 'jobs', body: 'x' }, sampled)
  const spans = await otlp.until((all) => all.length === 2)
  expect(otlp.requests[0]).toMatchObject({ path: '/v1/traces', contentType: type, headers: { 'x-key': 'abc' } })
  expect(spans.map(({ name }) => name).toSorted()).toEqual(['send', 'tools/call queue_send'])
  expect(spans[0]?.service).toBe('broker')
  const resource = Object.entries(spans[0]?.resource ?? {}).map(([name, { value }]) => [name, value])
  expect(Object.fromEntries(resource)).toMatchObject({
    'service.version': expect.any(String),
    'service.instance.id': expect.any(String),
    'deployment.environment.name': 'test',
  })
})

test('telemetry - settings that the export cannot follow are named at the start', async () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_PROPAGATORS: 'tracecontext,jaeger',
  }
  const refusal = await serve({}, env).catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'CONFIG_INVALID' })
  for (const text of [
    'OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" is not allowed; allowed: an address of http or https',
    'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not allowed; allowed: http/protobuf, http/json',
    'OTEL_TRACES_SAMPLER: "sometimes" is not allowed; allowed: always_on,',
    'OTEL_PROPAGATORS: "jaeger" is not allowed; allowed: tracecontext,',
  ])
    expect(String(refusal)).toContain(text)
  const ratio = {
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '2',
  }
  await expect(serve({}, ratio)).rejects.toThrow('OTEL_TRACES_SAMPLER_ARG: "2" is not allowed')
  // Switched off, the variables are those of other programs.
  await serve({}, { ...env, OTEL_SDK_DISABLED: 'true' })
})

test('telemetry - the endpoint of a server that is started by a program need not be one of its process', async () => {
  const otlp = await OtlpReceiver.open()
  onTestFinished(() => otlp[Symbol.asyncDispose]())
  const server = await serve({}, { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url })
  await callTool(server.http.url, 'queue_send', { channel: 'jobs', body: 'x' }, sampled)
  await server.close()
  expect(otlp.spans.map(({ name }) => name).toSorted()).toEqual(['send', 'tools/call queue_send'])
})

/** Sends the marker everywhere where a caller may put a text that must not be exported. Returns the receipts that it got. */
async function useEverywhere(url: string, api: string, bearer: string, marker: string): Promise<readonly string[]> {
  const headers = { ...sampled, authorization: bearer, baggage: `user=${marker}`, cookie: `session=${marker}` }
  const tool = (name: string, args: object) => rpc(url, 'tools/call', { name, arguments: args }, headers)
  const agent = await openSdkAgent()
  const card = { agent_id: 'shouting', name: 'Shouting', url: agent.url, description: marker }
  expect((await postJson(`${url}/agents/register`, card, headers)).ok).toBe(true)
  const webhook = await openReceiver()
  const sink = `${webhook.url}/${marker}?key=${marker}`
  const subscription = { sink, config: { channel: 'stored', start: 'first' } }
  expect((await postJson(`${url}/ce/subscriptions`, subscription, headers)).status).toBe(201)
  const content = { body: marker, metadata: marker, tags: { note: marker, [marker]: 'x' } }
  await tool('queue_send', { channel: 'jobs', ...content })
  await tool('queue_receive', { channel: 'jobs', max_messages: 1 })
  await tool('events_store_publish', { channel: 'stored', ...content })
  await until(() => webhook.received.length > 0)
  await tool('agent_send', { agent_id: 'shouting', message: marker })
  await tool('queue_send', { channel: 'jobs', body: marker, [marker]: marker })
  await tool(`tool-${marker}`, {})
  await rpc(url, `method/${marker}`, { [marker]: marker }, headers)
  await fetch(`${url}/ce/${marker}?${marker}=${marker}`, { headers })
  await fetch(`${url}/${marker}`, { headers })
  const event = {
    specversion: '1.0',
    id: '1',
    source: '/shop',
    type: 'paid',
    subject: 'jobs',
    secret: marker,
    data: marker,
  }
  const typed = { ...headers, 'content-type': 'application/cloudevents+json' }
  await postJson(`${url}/ce/queue/send?note=${marker}`, event, typed)
  await postJson(`${url}/ce/queue/ack?receipt=${marker}`, {}, typed)
  await postJson(`${api}/api/actions/${marker}`, { [marker]: marker }, headers)
  await fetch(`${url}/agents`, { headers: { ...sampled, authorization: `Bearer ${marker}` } })
  const receipts: string[] = []
  const sb = connect(url, {
    token: bearer.replace('Bearer ', ''),
    traceHeaders: () => sampled,
    fetch: (address, init) => {
      receipts.push(...new URL(address).searchParams.getAll('receipt'))
      return fetch(address, init)
    },
  })
  onTestFinished(() => sb.close())
  const responder = sb.answer('queries', 'questions', () => marker)
  await responder.ready
  expect(await sb.query('questions', marker)).toBe(marker)
  expect((await sb.agents('shouting').send(marker)).text).toBe(marker.toUpperCase())
  await sb.queue('jobs').send(marker)
  for await (const message of sb.queue('jobs').receive()) await message.nack()
  await sb.close()
  return receipts
}

test.each(PROTOCOLS)(
  'telemetry - nothing that is secret is exported with %s',
  { timeout: 30_000 },
  async (protocol) => {
    const keys = issuer()
    const webhooks = { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] }
    const { server, otlp } = await serveTraced(
      { ...trusting(keys), webhooks },
      { OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
    )
    const marker = `m${randomUUID().replaceAll('-', '')}`
    const bearer = await keys.bearer('alice', { jti: marker })
    const receipts = await useEverywhere(server.http.url, server.api.url, bearer, marker)
    expect(receipts).toHaveLength(1)
    await server.close()
    // Without spans, this test would show nothing.
    expect(new Set(otlp.spans.map(({ name }) => name)).size).toBeGreaterThan(10)
    const bytes = otlp.bytes.toString('latin1')
    for (const secret of [marker, marker.toUpperCase(), bearer.slice(7), ...bearer.slice(7).split('.'), ...receipts]) {
      expect(bytes.includes(secret)).toBe(false)
    }
    // No token, user or client id, and no name of a file of the server.
    for (const text of ['alice', '.ts:', 'node_modules']) expect(bytes.includes(text)).toBe(false)
    expect(violations(otlp.spans)).toEqual([])
  },
)

const RATIO_0 = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }

test('telemetry - the decision of a caller without credentials does not count; the id of its trace is kept', async () => {
  const none = await serveTraced({}, RATIO_0)
  await callTool(none.server.http.url, 'queue_send', { channel: 'jobs', body: 'x' }, sampled)
  const peeked = await callTool(none.server.http.url, 'queue_peek', { channel: 'jobs', max_messages: 1 })
  expect(peeked.text).not.toContain('traceparent')
  await none.server.close()
  expect(none.otlp.requests).toEqual([])
  vi.unstubAllEnvs()
  const all = await serveTraced()
  await callTool(all.server.http.url, 'queue_send', { channel: 'jobs', body: 'x' }, unsampled)
  await all.server.close()
  expect(all.otlp.spans.map(({ name, traceId }) => [name, traceId])).toEqual([
    ['send', TRACE],
    ['tools/call queue_send', TRACE],
  ])
})

test('telemetry - the decision of a caller with credentials, or behind a trusted proxy, counts', async () => {
  const keys = issuer()
  const bearer = { authorization: await keys.bearer('alice') }
  const callers: readonly (readonly [PartialConfig, Record<string, string>])[] = [
    [trusting(keys), bearer],
    [{ trustedProxies: ['127.0.0.1'] }, {}],
  ]
  for (const [settings, headers] of callers) {
    const { server, otlp } = await serveTraced(settings, RATIO_0)
    const send = (more: object) =>
      callTool(server.http.url, 'queue_send', { channel: 'jobs', body: 'x' }, { ...headers, ...more })
    await send({})
    await send(unsampled)
    await send(sampled)
    await server.close()
    expect(otlp.spans.map(({ name, traceId }) => [name, traceId])).toEqual([
      ['send', TRACE],
      ['tools/call queue_send', TRACE],
    ])
    vi.unstubAllEnvs()
  }
})

test('telemetry - without a collector, a server works as before, warns once a minute, and closes in time', async () => {
  const { env } = await openOtlp({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}` })
  const { server, lines } = await serveLogged({}, 'info', env)
  const agent = await openSdkAgent()
  await register(server.http.url, { agent_id: 'shouting', name: 'Shouting', url: agent.url })
  const warnings = () => lines.filter(({ msg }) => msg === 'traces could not be exported; their spans are lost')
  for (let i = 0; warnings().length === 0; i++) {
    expect(await callTool(server.http.url, 'queue_send', { channel: 'jobs', body: String(i) })).toMatchObject({
      isError: false,
    })
  }
  expect((await callTool(server.http.url, 'agent_send', { agent_id: 'shouting', message: 'a' })).text).toContain('A')
  const startedAt = performance.now()
  await server.close()
  expect(performance.now() - startedAt).toBeLessThan(4_000)
  expect(warnings()).toHaveLength(1)
  expect(warnings()[0]).toMatchObject({ level: 40, reason: expect.any(String) })
  expect(lines.filter(({ level }) => Number(level) >= 50)).toEqual([])
  const requests = lines.filter(({ msg }) => msg === 'request')
  expect(requests.at(-1)).toMatchObject({
    trace_id: expect.stringMatching(/^[\da-f]{32}$/),
    span_id: expect.stringMatching(/^[\da-f]{16}$/),
    trace_flags: '01',
  })
})

test('telemetry - a collector that never answers delays the end of a server by at most 2 s', async () => {
  const silent = await openReceiver()
  silent.reply = () => {}
  const { env } = await openOtlp({ OTEL_EXPORTER_OTLP_ENDPOINT: silent.url })
  const { server } = await serveLogged({}, 'info', env)
  await callTool(server.http.url, 'queue_send', { channel: 'jobs', body: 'x' })
  await until(() => silent.received.length > 0)
  const startedAt = performance.now()
  await server.close()
  const seconds = (performance.now() - startedAt) / 1000
  expect(seconds).toBeGreaterThan(1.5)
  expect(seconds).toBeLessThan(4)
})
