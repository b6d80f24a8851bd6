import { context, propagation, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { until } from '@signalbox/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Fetch, Message } from '../src/index.ts'
import { openTelemetry } from '../src/opentelemetry.ts'
import { serverForFile } from './server.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const tracer = provider.getTracer('test')

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  )
})

afterAll(() => {
  context.disable()
  propagation.disable()
})

const file = serverForFile({ onError: () => {}, ...openTelemetry() })

/** Runs in a span, and returns its traceparent and the result. */
async function inSpan<T>(name: string, run: () => Promise<T>): Promise<readonly [traceparent: string, result: T]> {
  return tracer.startActiveSpan(name, { kind: SpanKind.INTERNAL, root: true }, async (span) => {
    const { traceId, spanId } = span.spanContext()
    try {
      return [`00-${traceId}-${spanId}-01`, await run()] as const
    } finally {
      span.end()
    }
  })
}

/** Begins and ends a span in the active context, and returns the traceparent of its parent. */
function parentOfNew(name: string): string | undefined {
  tracer.startSpan(name).end()
  const { traceId, spanId } = trace.getSpanContext(context.active()) ?? {}
  const ended = exporter.getFinishedSpans().find((span) => span.name === name)
  expect(ended?.parentSpanContext?.spanId).toBe(spanId)
  return spanId === undefined ? undefined : `00-${traceId}-${spanId}-01`
}

/** A `fetch` that keeps the headers of requests, by path. */
function watched(): { readonly fetch: Fetch; readonly sent: (path: string) => readonly Headers[] } {
  const requests: (readonly [path: string, headers: Headers])[] = []
  return {
    fetch: (url, init) => {
      requests.push([new URL(url).pathname, new Headers(init.headers)])
      return fetch(url, init)
    },
    sent: (path) => requests.filter(([each]) => each === path).map(([, headers]) => headers),
  }
}

const TRACE = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'vendor=a' }

/** Sends a CloudEvent with a trace, as a sender in another language does. */
async function sendTraced(path: string, channel: string): Promise<void> {
  const event = { specversion: '1.0', id: '1', source: '/test', type: 'test', subject: channel, data: 1, ...TRACE }
  const headers = { 'Content-Type': 'application/cloudevents+json' }
  const response = await fetch(`${file.server.url}${path}`, { method: 'POST', headers, body: JSON.stringify(event) })
  expect(response.ok).toBe(true)
}

test('opentelemetry - a request carries the active context with its baggage, and nothing outside of a span', async () => {
  const { sent, fetch: watching } = watched()
  const queue = file.client({ fetch: watching }).queue('injected')
  await queue.send('outside')
  const baggage = propagation.createBaggage({ tenant: { value: 'acme' } })
  const [traceparent] = await inSpan('sender', () =>
    context.with(propagation.setBaggage(context.active(), baggage), () => queue.send('inside')),
  )
  const [outside, inside] = sent('/ce/queue/send')
  expect(outside?.get('traceparent')).toBeNull()
  expect(inside?.get('traceparent')).toBe(traceparent)
  expect(inside?.get('baggage')).toBe('tenant=acme')
  expect(inside?.get('content-type')).toBe('application/cloudevents+json')
})

test('opentelemetry - messages that are sent at once in two spans are in the traces of their spans', async () => {
  const { sent, fetch: watching } = watched()
  const queue = file.client({ fetch: watching }).queue('two-spans')
  const send = (name: string) => inSpan(name, () => Promise.all([queue.send(`${name} 1`), queue.send(`${name} 2`)]))
  const [[first], [second]] = await Promise.all([send('first'), send('second')])
  expect(sent('/ce/queue/send').map((headers) => headers.get('traceparent'))).toEqual([first, second])
})

test('opentelemetry - a queue worker handles and settles a message in its trace, and polls outside of every trace', async () => {
  const { sent, fetch: watching } = watched()
  const queue = file.client({ fetch: watching }).queue('worker')
  const seen: (readonly [Message['trace'], parent: string | undefined])[] = []
  const [, [pool]] = await inSpan('start', async () => [
    queue.work(async (_data, { trace: ofMessage }) => {
      await Promise.resolve()
      seen.push([ofMessage, parentOfNew(`worker ${seen.length}`)])
    }),
  ])
  await sendTraced('/ce/queue/send', 'worker')
  await until(() => seen.length === 1)
  await queue.send('without a trace')
  await until(() => seen.length === 2)
  await pool?.drain()
  expect(seen).toEqual([
    [TRACE, TRACE.traceparent],
    [undefined, undefined],
  ])
  expect(sent('/ce/queue/ack').map((headers) => headers.get('traceparent'))).toEqual([TRACE.traceparent, null])
  expect(sent('/ce/queue/receive').filter((headers) => headers.has('traceparent'))).toEqual([])
})

test('opentelemetry - a responder handles and answers a request in its trace', async () => {
  const { sent, fetch: watching } = watched()
  const sb = file.client({ fetch: watching })
  const seen: unknown[] = []
  const responder = sb.answer('queries', 'responder', async (_data, { trace: ofMessage }) => {
    await Promise.resolve()
    seen.push(ofMessage, parentOfNew('responder'))
    return 'answer'
  })
  await responder.ready
  await sendTraced('/ce/send/query?timeout=10', 'responder')
  expect(seen).toEqual([TRACE, TRACE.traceparent])
  expect(sent('/ce/send/response').map((headers) => headers.get('tracestate'))).toEqual([TRACE.tracestate])
})

test('opentelemetry - an agent works on a request in the trace of its caller, in every step of its answer', async () => {
  const sb = file.client()
  const seen: unknown[] = []
  sb.agents.work(
    'traced',
    async function* work() {
      seen.push(parentOfNew('agent, first step'), propagation.getActiveBaggage()?.getEntry('tenant')?.value)
      yield 'one'
      await Promise.resolve()
      seen.push(parentOfNew('agent, second step'))
    },
    { card: {} },
  )
  await until(async () => (await sb.agents.list()).some((card) => card['agent_id'] === 'traced'))
  const baggage = propagation.createBaggage({ tenant: { value: 'acme' } })
  const [traceparent, reply] = await inSpan('caller', () =>
    context.with(propagation.setBaggage(context.active(), baggage), () => sb.agents('traced').send('go')),
  )
  expect(reply).toMatchObject({ state: 'completed', text: 'one' })
  expect(seen).toEqual([traceparent, 'acme', traceparent])
})
