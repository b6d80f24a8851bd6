import type { SpanAttributes } from './attributes.ts'

/**
 * The port to a tracing system. It has types only: `@signalbox/broker-core/opentelemetry` implements it. A span is one
 * step of a trace, with a start, an end and a parent. Only recorded steps have a span: code that gets `undefined`
 * records nothing, and does what it would do without tracing.
 */
export interface Tracing {
  /** Returns the context in the headers of a request, in the formats that the tracing system reads. */
  read(headers: TraceHeaders): TraceContext | undefined
  /**
   * Begins the first span of a request, or of other work, on this server. This decides whether the trace is recorded
   * here.
   * @param parent The span that caused the work. @default a new trace begins
   * @returns undefined if the trace is not recorded
   */
  begin(start: SpanStart, parent?: RemoteParent): Span | undefined
  /**
   * Returns the pattern of a channel whose name may be a part of the names of spans; undefined for others. A tracing
   * system keeps statistics for each name, so that there must not be any number of them.
   */
  destinationTemplate(channel: string): string | undefined
}

/** Headers by lower-case name. */
export type TraceHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** The identity of a span, as it travels between processes (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** Bit 0 is set if the sender records the trace. */
  readonly flags: number
  readonly state?: string | undefined
}

/** A span of another process, or of earlier work. */
export interface RemoteParent {
  readonly context: TraceContext
  /**
   * `false` if the context comes from a caller without credentials: the server itself then decides whether to record,
   * and keeps only the id of the trace.
   */
  readonly isTrusted: boolean
}

/** `server` for requests, `client` for calls to others, `producer` and `consumer` for messages. */
export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

/** A relation to another span, in addition to that to the parent. */
export interface SpanLink {
  readonly context: TraceContext
  readonly attributes?: SpanAttributes
}

/** The most links of one span. */
export const MAX_LINKS = 128

/** The start of a span. */
export interface SpanStart {
  readonly name: string
  readonly kind: SpanKind
  readonly attributes: SpanAttributes
  readonly links?: readonly SpanLink[] | undefined
  /** In ms since the epoch. @default now */
  readonly startedAt?: number | undefined
}

/** Begins spans with the same parent, or spans without one. */
export interface SpanParent {
  /** @returns undefined if the span is not recorded */
  child(start: SpanStart): Span | undefined
}

/** A recorded span. Its end is reported by {@link end}, once. */
export interface Span extends SpanParent {
  readonly context: TraceContext
  /** Adds attributes. */
  set(attributes: SpanAttributes): void
  /** Adds an event at the present time. */
  event(name: string): void
  /**
   * Records a failure.
   * @param type The code of the error, such as `CHANNEL_NOT_FOUND`
   * @param isFault `true` sets the status of the span to error. @default true
   */
  fail(type: string, isFault?: boolean): void
  /** Returns the headers that pass the span on to another process, in the formats that the tracing system writes. */
  headers(): Readonly<Record<string, string>>
  /** Ends the span. @param at In ms since the epoch. @default now */
  end(at?: number): void
}

/** Returns the present time in ms since the epoch, with parts of a millisecond. */
export function spanTime(at = performance.now()): number {
  return performance.timeOrigin + at
}
