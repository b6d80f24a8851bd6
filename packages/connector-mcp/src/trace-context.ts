import type { IncomingHttpHeaders } from 'node:http'

import type { JsonObject } from '@signalbox/http-kit'

const HEADERS = ['traceparent', 'tracestate'] as const

/** The members of `_meta` and their formats: W3C Trace Context, including later versions, and W3C Baggage. */
const MEMBERS: readonly (readonly [string, RegExp])[] = [
  ['traceparent', /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(?:-[\x21-\x7e]{0,200})?$/],
  ['tracestate', /^[\x20-\x7e]{1,512}$/],
  ['baggage', /^[\x20-\x7e]{1,8192}$/],
]

/**
 * Returns the trace context of a request, to forward to agents: from `_meta` if it has one, otherwise the unchanged
 * trace headers (W3C Trace Context). Drops members of `_meta` that a header could not carry.
 * @param meta The `_meta` of a request whose revision defines these members
 */
export function traceContext(
  headers: IncomingHttpHeaders,
  meta: JsonObject | undefined,
): Readonly<Record<string, string>> {
  const trace: Record<string, string> = {}
  if (meta !== undefined && MEMBERS.some(([name]) => meta[name] !== undefined)) {
    for (const [name, format] of MEMBERS) {
      const value = meta[name]
      if (typeof value === 'string' && format.test(value)) trace[name] = value
    }
    return trace
  }
  for (const name of HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') trace[name] = value
  }
  return trace
}
