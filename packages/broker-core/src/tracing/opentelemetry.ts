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

const KINDS: Readonly<Record<SpanKind, Kind>> = {
  server: Kind.SERVER,
  client: Kind.CLIENT,
  producer: Kind.PRODUCER,
  consumer: Kind.CONSUMER,
}

class OpenTelemetry implements Tracing {
  readonly #tracer: Tracer
  readonly #propagator: TextMapPropagator
  readonly #destinations: readonly (readonly [pattern: string, matches: (channel: string) => boolean])[]

  constructor({ tracer, propagator = propagation, destinations = [] }: OpenTelemetryOptions) {
    this.#tracer = tracer ?? trace.getTracer('signalbox')
    this.#propagator = propagator
    this.#destinations = destinations.map((pattern) => [pattern, nameMatcher([pattern])])
  }

  readonly read: Tracing['read'] = (headers) => {
    const context = this.#propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
    const found = trace.getSpanContext(context)
    return found === undefined || !isSpanContextValid(found) ? undefined : ownContext(found)
  }

  readonly begin: Tracing['begin'] = (start, parent) => this.#start(start, parentContext(parent))

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
