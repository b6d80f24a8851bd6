import type { IncomingHttpHeaders } from 'node:http'

/** What belongs to this hop, to the broker, or to the caller alone: none of it reaches an agent (A5). */
const KEPT_BACK: ReadonlySet<string> = new Set([
  // Hop by hop (RFC 9110, section 7.6.1).
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // About this request's own bytes, or the answer's.
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'expect',
  // The caller's credentials.
  'authorization',
  'cookie',
  'proxy-authorization',
  // Where the caller is.
  'origin',
  'forwarded',
  'x-real-ip',
])

/**
 * The caller's headers that an agent gets, by lower-case name (A5). Whatever a caller says under `x-broker-*` is dropped:
 * only the broker speaks under those names. Names with an underscore are dropped too: to CGI and WSGI servers
 * `X_Broker_Caller_ID` is the same as `X-Broker-Caller-ID`.
 */
export function callerHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const forwarded: Record<string, string> = {}
  const named = namedByConnection(headers.connection)
  for (const name in headers) {
    if (KEPT_BACK.has(name) || name.startsWith('x-broker-') || name.startsWith('x-forwarded-')) continue
    if (name.includes('_')) continue
    if (named?.has(name)) continue
    const value = headers[name]
    if (value === undefined) continue
    forwarded[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return forwarded
}

/** `Connection` may name more headers that end at this hop. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}
