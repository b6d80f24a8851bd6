import type { Tags } from '../message.ts'
import type { TraceContext } from './tracing.ts'

/** Version, trace id, span id and flags. A later version may append more (W3C Trace Context, section 3.2.4). */
const TRACEPARENT =
  /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-[\x21-\x7e]{0,200})?$/

const TRACESTATE = /^[\x20-\x7e]{1,512}$/

/** The bit in the flags of a context whose trace is recorded. */
export const SAMPLED = 1

/**
 * Returns the context that a traceparent and a tracestate describe; undefined if the traceparent is invalid. An invalid
 * tracestate is left out.
 */
export function traceContextOf(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? tracestate : undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state }
}

/** Returns the traceparent of a context, in version 00. */
function traceparentOf({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${(flags & 0xff).toString(16).padStart(2, '0')}`
}

/** Returns the tags with which a message carries a context. */
export function traceTags(context: TraceContext): Tags {
  const traceparent = traceparentOf(context)
  return context.state === undefined ? { traceparent } : { traceparent, tracestate: context.state }
}

/**
 * Returns the creation context of a message: that of its tags, or of the CloudEvents extension with the same name.
 * Undefined if it has none.
 */
export function creationContext(tags: Tags): TraceContext | undefined {
  const { traceparent } = tags
  if (traceparent !== undefined) return traceContextOf(traceparent, tags['tracestate'])
  const extension = tags['ce_traceparent']
  return extension === undefined ? undefined : traceContextOf(extension, tags['ce_tracestate'])
}

/** Returns true if a message has a creation context, valid or not. */
export function hasCreationContext(tags: Tags): boolean {
  return tags['traceparent'] !== undefined || tags['ce_traceparent'] !== undefined
}
