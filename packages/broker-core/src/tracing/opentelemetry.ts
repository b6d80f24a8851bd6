import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'

import type {
  Attributes,
  Context,
  Link,
  Span as ApiSpan,
  SpanContext,
  TextMapPropagator,
  Tracer,
} from '@opentelemetry/api'
import {
  createContextKey,
  createTraceState,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  SpanKind as Kind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'

import { nameMatcher } from '../glob.ts'
import type { SpanAttributes } from './attributes.ts'
import { ATTRIBUTES, MAX_ATTRIBUTE_CHARACTERS } from './attributes.ts'
import type { RemoteParent, Span, SpanKind, SpanLink, SpanStart, TraceContext, Tracing } from './tracing.ts'
import { MAX_LINKS, spanTime } from './tracing.ts'

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /** @default the tracer `signalbox` of the global tracer provider */
  readonly tracer?: Tracer
  /** @default the global propagator */
  readonly propagator?: TextMapPropagator
  /**
   * The channels whose names may be a part of the names of spans: names and patterns with `*` and `?`. A span of
   * another channel has the name of its operation alone; the channel is an attribute of each.
   * @default none
   */
  readonly destinations?: readonly string[]
  /** Decides before a span is built. Its sampler and its ids must be those of the tracer's provider. @default the tracer decides */
  readonly decision?: EarlyDecision
}

/**
 * Returns the tracing of a broker with the API of OpenTelemetry: `createBroker(engine, { tracing: openTelemetry() })`.
 * Records nothing unless the program has set up an OpenTelemetry SDK. Contexts are passed explicitly: no context
 * manager is needed.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Tracing {
  return new OpenTelemetry(options)
}

const UNTRUSTED = createContextKey('signalbox untrusted parent')

/** The part of a sampler of the OpenTelemetry SDK that decides. */
interface Sampling<Rest extends readonly unknown[], Result> {
  shouldSample(context: Context, ...rest: Rest): Result
  toString(): string
}

/**
 * Returns a sampler that ignores the decision of callers without credentials: it decides about their traces as about
 * new ones, with the same trace id. Wrap the sampler of the SDK in it: `new BasicTracerProvider({ sampler: ownDecision(sampler) })`.
 */
export function ownDecision<Rest extends readonly unknown[], Result>(
  sampler: Sampling<Rest, Result>,
): Sampling<Rest, Result> {
  return {
    shouldSample: (context, ...rest) =>
      sampler.shouldSample(context.getValue(UNTRUSTED) === true ? trace.deleteSpan(context) : context, ...rest),
    toString: () => String(sampler),
  }
}

/** The number of new traces that are decided about at once. */
const TRACES_AT_ONCE = 256
/** Characters of the ids in hexadecimal digits. */
const TRACE_ID = 32
const SPAN_ID = 16

/** A sampler of the OpenTelemetry SDK. */
type HeadSampler = Sampling<
  [traceId: string, name: string, kind: Kind, attributes: Attributes, links: Link[]],
  { readonly decision: number }
>

/** `SamplingDecision.NOT_RECORD` of the SDK. */
const NOT_RECORD = 0

/**
 * Asks a sampler before a span is built: a span that is not recorded costs a multiple of the decision. For samplers that
 * decide by the trace id and the parent alone, as those of the OpenTelemetry specification do:
 * `const decision = new EarlyDecision(sampler)`, `new BasicTracerProvider({ sampler: decision.sampler, idGenerator: decision.ids })`,
 * `openTelemetry({ tracer, decision })`.
 */
export class EarlyDecision {
  /** The sampler, which ignores the decision of callers without credentials: see {@link ownDecision}. */
  readonly sampler: HeadSampler
  /** The ids of the next new traces; undefined for one that is not recorded. */
  readonly #traces: (string | undefined)[] = []
  /** The id of the trace that the SDK begins next. */
  #begun: string | undefined
  #digits = Buffer.alloc(0)
  #used = 0

  /** @param sampler A sampler of the OpenTelemetry SDK */
  constructor(sampler: HeadSampler) {
    this.sampler = ownDecision(sampler)
  }

  /** The source of ids for the SDK. */
  readonly ids = {
    generateTraceId: (): string => {
      const begun = this.#begun
      this.#begun = undefined
      return begun ?? this.#randomId(TRACE_ID)
    },
    generateSpanId: (): string => this.#randomId(SPAN_ID),
  }

  /** Returns whether the span is recorded that the SDK begins next, with this context. */
  isRecorded(context: Context): boolean {
    const parent = trace.getSpanContext(context)
    if (parent !== undefined) return this.#records(context, parent.traceId)
    if (this.#traces.length === 0) this.#decideTraces()
    this.#begun = this.#traces.pop()
    return this.#begun !== undefined
  }

  /** In one loop, which is several times faster than one decision among the other work of a request. */
  #decideTraces(): void {
    for (let i = 0; i < TRACES_AT_ONCE; i++) {
      const traceId = this.#randomId(TRACE_ID)
      this.#traces.push(this.#records(ROOT_CONTEXT, traceId) ? traceId : undefined)
    }
  }

  #records(context: Context, traceId: string): boolean {
    return this.sampler.shouldSample(context, traceId, '', Kind.SERVER, {}, []).decision !== NOT_RECORD
  }

  #randomId(length: number): string {
    if (this.#used + length > this.#digits.length) {
      this.#digits = Buffer.from(randomBytes((TRACES_AT_ONCE * TRACE_ID) / 2).toString('hex'), 'latin1')
      this.#used = 0
    }
    const begin = this.#used
    this.#used += length
    // Faster than a part of a text, whose characters are read through the text.
    return this.#digits.toString('latin1', begin, this.#used)
  }
}

const KINDS: Readonly<Record<SpanKind, Kind>> = {
  server: Kind.SERVER,
  client: Kind.CLIENT,
  producer: Kind.PRODUCER,
  consumer: Kind.CONSUMER,
}

class OpenTelemetry implements Tracing {
  readonly #tracer: Tracer
  readonly #propagator: TextMapPropagator
  readonly #decision: EarlyDecision | undefined
  readonly #destinations: readonly (readonly [pattern: string, matches: (channel: string) => boolean])[]

  constructor({ tracer, propagator = propagation, destinations = [], decision }: OpenTelemetryOptions) {
    this.#tracer = tracer ?? trace.getTracer('signalbox')
    this.#propagator = propagator
    this.#decision = decision
    this.#destinations = destinations.map((pattern) => [pattern, nameMatcher([pattern])])
  }

  readonly read: Tracing['read'] = (headers) => {
    const context = this.#propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
    const found = trace.getSpanContext(context)
    return found === undefined || !isSpanContextValid(found) ? undefined : ownContext(found)
  }

  readonly begin: Tracing['begin'] = (start, parent) => {
    const context = parentContext(parent)
    if (this.#decision?.isRecorded(context) === false) return undefined
    return this.#start(start, context)
  }

  readonly destinationTemplate: Tracing['destinationTemplate'] = (channel) =>
    this.#destinations.find(([, matches]) => matches(channel))?.[0]

  #start({ name, kind, attributes, links, startedAt }: SpanStart, context: Context): Span | undefined {
    const span = this.#tracer.startSpan(
      name,
      {
        kind: KINDS[kind],
        attributes: recorded(attributes),
        links: links?.slice(0, MAX_LINKS).map(apiLink) ?? [],
        startTime: startedAt ?? spanTime(),
        root: context === ROOT_CONTEXT,
      },
      context,
    )
    return span.isRecording() ? this.#spanOf(span, trace.setSpan(ROOT_CONTEXT, span)) : undefined
  }

  #spanOf(span: ApiSpan, inside: Context): Span {
    return {
      context: ownContext(span.spanContext()),
      child: (start) => this.#start(start, inside),
      set: (attributes) => void span.setAttributes(recorded(attributes)),
      event: (name) => void span.addEvent(name, undefined, spanTime()),
      fail: (type, isFault = true) => {
        span.setAttributes(recorded({ 'error.type': type }))
        if (isFault) span.setStatus({ code: SpanStatusCode.ERROR })
      },
      headers: () => {
        const headers: Record<string, string> = {}
        this.#propagator.inject(inside, headers, defaultTextMapSetter)
        return headers
      },
      end: (at = spanTime()) => span.end(at),
    }
  }
}

function parentContext(parent: RemoteParent | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT
  const context = trace.setSpanContext(ROOT_CONTEXT, apiContext(parent.context))
  return parent.isTrusted ? context : context.setValue(UNTRUSTED, true)
}

function ownContext({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  return { traceId, spanId, flags: traceFlags, state: traceState?.serialize() || undefined }
}

function apiContext({ traceId, spanId, flags, state }: TraceContext): SpanContext {
  const context = { traceId, spanId, traceFlags: flags, isRemote: true }
  return state === undefined ? context : { ...context, traceState: createTraceState(state) }
}

function apiLink({ context, attributes = {} }: SpanLink): Link {
  return { context: apiContext(context), attributes: recorded(attributes) }
}

/** Returns the attributes that may be recorded, with texts that are not too long. */
function recorded(attributes: SpanAttributes): Attributes {
  const kept: Attributes = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || !Object.hasOwn(ATTRIBUTES, name)) continue
    kept[name] = typeof value === 'string' ? value.slice(0, MAX_ATTRIBUTE_CHARACTERS) : value
  }
  return kept
}
