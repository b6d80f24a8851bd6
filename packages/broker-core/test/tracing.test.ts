import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import type { ReadableSpan, Sampler } from '@opentelemetry/sdk-trace-base'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { EarlyDecision, openTelemetry, ownDecision } from '../src/entries/opentelemetry.ts'
import type { SpanAttributes, SpanStart, Tracing } from '../src/index.ts'
import { OpenLeases } from '../src/tracing/open-leases.ts'
import { creationContext, traceContextOf, traceTags } from '../src/tracing/trace-context.ts'

const PARENT = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', flags: 1 }

interface Recorder {
  readonly tracing: Tracing
  readonly spans: () => readonly ReadableSpan[]
}

function recorder(sampler: Sampler = new AlwaysOnSampler(), destinations: readonly string[] = []): Recorder {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({
    sampler: ownDecision(sampler),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  const propagator = new W3CTraceContextPropagator()
  const tracing = openTelemetry({ tracer: provider.getTracer('test'), propagator, destinations })
  return { tracing, spans: () => exporter.getFinishedSpans() }
}

/** A recorder whose sampler is asked before a span is built. */
function earlyRecorder(sampler: Sampler): Recorder {
  const exporter = new InMemorySpanExporter()
  const decision = new EarlyDecision(sampler)
  const provider = new BasicTracerProvider({
    sampler: decision.sampler,
    idGenerator: decision.ids,
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  })
  const tracing = openTelemetry({ tracer: provider.getTracer('test'), decision })
  return { tracing, spans: () => exporter.getFinishedSpans() }
}

const START: SpanStart = { name: 'work', kind: 'server', attributes: {} }

function hex(length: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: length, maxLength: length })
}

describe('trace context', () => {
  const context = fc.record({
    traceId: hex(32).filter((text) => !/^0+$/.test(text)),
    spanId: hex(16).filter((text) => !/^0+$/.test(text)),
    flags: fc.integer({ min: 0, max: 255 }),
    state: fc.option(fc.stringMatching(/^[a-z]{1,8}=[a-z0-9]{1,20}$/), { nil: undefined }),
  })

  test('trace context - the tags of a message name the context that wrote them', () => {
    fc.assert(
      fc.property(context, (given) => {
        expect(creationContext(traceTags(given))).toEqual(given)
      }),
    )
  })

  test.each([
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
    '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331',
    '',
  ])('trace context - %j is none', (text) => expect(traceContextOf(text)).toBeUndefined())

  test('trace context - a later version may append fields', () => {
    expect(traceContextOf('01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more')).toEqual({
      ...PARENT,
      state: undefined,
    })
  })

  test('trace context - an event brings it in its extensions', () => {
    const tags = { ce_traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', ce_tracestate: 'a=b' }
    expect(creationContext(tags)).toEqual({ ...PARENT, state: 'a=b' })
  })
})

describe('OpenTelemetry', () => {
  test('OpenTelemetry - a span has its parent, its kind, its times and its links', () => {
    const { tracing, spans } = recorder()
    const begun = tracing.begin(
      { ...START, startedAt: 1_000_000, links: [{ context: { ...PARENT, spanId: '00f067aa0ba902b7' } }] },
      { context: PARENT, isTrusted: true },
    )
    begun?.child({ name: 'part', kind: 'producer', attributes: {} })?.end(1_000_500.5)
    begun?.end(1_001_000)
    const [part, whole] = spans()
    expect(whole).toMatchObject({ name: 'work', kind: 1, startTime: [1000, 0], endTime: [1001, 0] })
    expect(whole?.parentSpanContext).toMatchObject({ spanId: PARENT.spanId, isRemote: true })
    expect(whole?.links.map(({ context }) => context.spanId)).toEqual(['00f067aa0ba902b7'])
    expect(part?.parentSpanContext?.spanId).toBe(whole?.spanContext().spanId)
    expect(part?.spanContext().traceId).toBe(PARENT.traceId)
  })

  test('OpenTelemetry - attributes outside the list are dropped, and long texts are cut', () => {
    const { tracing, spans } = recorder()
    const given: SpanAttributes & { readonly body: string } = { body: 'secret', 'url.path': 'x'.repeat(300) }
    tracing.begin({ ...START, attributes: given })?.end()
    expect(spans()[0]?.attributes).toEqual({ 'url.path': 'x'.repeat(256) })
  })

  test('OpenTelemetry - headers pass a span on, and are read again', () => {
    const { tracing } = recorder()
    const span = tracing.begin(START, { context: { ...PARENT, state: 'vendor=1' }, isTrusted: true })
    expect(tracing.read(span?.headers() ?? {})).toEqual(span?.context)
    expect(span?.context.state).toBe('vendor=1')
    expect(tracing.read({ traceparent: 'garbage' })).toBeUndefined()
  })

  test('OpenTelemetry - the pattern of a channel that may be named', () => {
    const { tracing } = recorder(undefined, ['orders.*', 'jobs'])
    expect(['orders.eu', 'jobs', 'other'].map((name) => tracing.destinationTemplate(name))).toEqual([
      'orders.*',
      'jobs',
      undefined,
    ])
  })
})

function opened(survives: boolean): Recorder & { readonly leases: OpenLeases; add(receipt: string, ms: number): void } {
  const recorded = recorder()
  const leases = new OpenLeases(survives)
  const add = (receipt: string, ms: number): void => {
    const span = recorded.tracing.begin({ ...START, name: receipt })
    if (span !== undefined) leases.add(receipt, span, 'q', Date.now() + ms)
  }
  return { ...recorded, leases, add }
}

function ended({ spans }: Recorder): unknown {
  return spans().map(({ name, attributes }) => [name, attributes['error.type']])
}

describe.each([
  { decides: 'the tracer', recorderOf: recorder },
  { decides: 'an early decision', recorderOf: earlyRecorder },
])('the decision to record, by $decides', ({ recorderOf }) => {
  test('OpenTelemetry - a span that the sampler does not record is none', () => {
    const { tracing, spans } = recorderOf(new AlwaysOffSampler())
    expect(tracing.begin(START)).toBeUndefined()
    expect(spans()).toEqual([])
  })

  test('OpenTelemetry - only a trusted caller decides that its trace is recorded', () => {
    const { tracing } = recorderOf(new ParentBasedSampler({ root: new AlwaysOffSampler() }))
    expect(tracing.begin(START, { context: PARENT, isTrusted: true })).toBeDefined()
    expect(tracing.begin(START, { context: PARENT, isTrusted: false })).toBeUndefined()
  })

  test('OpenTelemetry - the trace id of another caller is kept', () => {
    const { tracing } = recorderOf(new ParentBasedSampler({ root: new AlwaysOnSampler() }))
    const context = { ...PARENT, flags: 0 }
    expect(tracing.begin(START, { context, isTrusted: true })).toBeUndefined()
    expect(tracing.begin(START, { context, isTrusted: false })?.context.traceId).toBe(PARENT.traceId)
  })

  test('OpenTelemetry - a part of the new traces is recorded, each with its id, and calls with a parent between them', () => {
    const ratio = new TraceIdRatioBasedSampler(0.25)
    const { tracing, spans } = recorderOf(new ParentBasedSampler({ root: ratio }))
    const begun = 2000
    for (let i = 0; i < begun; i++) {
      tracing.begin(START)?.end()
      tracing.begin({ ...START, name: 'called' }, { context: PARENT, isTrusted: true })?.end()
    }
    const [called = [], roots = []] = [true, false].map((isCall) =>
      spans().filter(({ name }) => (name === 'called') === isCall),
    )
    const ids = new Set(roots.map((span) => span.spanContext().traceId))
    expect(called).toHaveLength(begun)
    expect(called.every((span) => span.spanContext().traceId === PARENT.traceId)).toBe(true)
    expect(ids.size).toBe(roots.length)
    expect(roots.length).toBeGreaterThan(begun / 5)
    expect(roots.length).toBeLessThan(begun / 3)
    expect(new Set(spans().map((span) => span.spanContext().spanId)).size).toBe(spans().length)
  })
})

describe('open leases', () => {
  const DONE = { settled: 1, lost: [] }

  test('open leases - a settlement ends the spans of its deliveries, but not of lost ones', () => {
    const host = opened(false)
    for (const receipt of ['a', 'b', 'c']) host.add(receipt, 60_000)
    expect(host.leases.queueOf(['a', 'unknown'])).toBe('q')
    expect(host.leases.links(['a', 'b', 'unknown'])).toHaveLength(2)
    host.leases.settle(['a', 'b'], { settled: 1, lost: ['b'] })
    host.leases.settle(['c'], DONE, 'nack')
    expect(ended(host)).toEqual([
      ['a', undefined],
      ['c', 'nack'],
    ])
    expect(host.leases.size).toBe(1)
  })

  test.each([
    [false, 'lease_expired'],
    [true, 'unknown'],
  ])('open leases - the end of a lease ends its span (another node may settle: %s)', async (survives, type) => {
    const host = opened(survives)
    host.add('lapsed', 1)
    host.add('extended', 1)
    host.leases.extend(['extended'], DONE, Date.now() + 60_000)
    await expect.poll(() => ended(host), { timeout: 5_000 }).toEqual([['lapsed', type]])
    expect(host.leases.size).toBe(1)
  })
})
