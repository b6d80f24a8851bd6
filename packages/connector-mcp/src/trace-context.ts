import type { IncomingHttpHeaders } from 'node:http'

const NAMES = ['traceparent', 'tracestate'] as const

/** The headers that tie a request to its caller's trace (W3C Trace Context), as they came; for whoever is called on its behalf. */
export function traceContext(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const trace: Record<string, string> = {}
  for (const name of NAMES) {
    const value = headers[name]
    if (typeof value === 'string') trace[name] = value
  }
  return trace
}
