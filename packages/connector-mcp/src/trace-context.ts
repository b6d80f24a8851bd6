import type { IncomingHttpHeaders } from 'node:http'

const NAMES = ['traceparent', 'tracestate'] as const

/** Returns the unchanged trace headers of a request (W3C Trace Context), to forward to agents. */
export function traceContext(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const trace: Record<string, string> = {}
  for (const name of NAMES) {
    const value = headers[name]
    if (typeof value === 'string') trace[name] = value
  }
  return trace
}
