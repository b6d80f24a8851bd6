import type { IncomingHttpHeaders } from 'node:http'

/**
 * Headers that agents do not get: they belong to this hop, to the broker or to the caller alone
 * (A5).
 */
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
  'http2-settings',
  'alt-used',
  // Servers and frameworks take these for the path or the method of the request, in place of its own.
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  // These describe the bytes of this request, or of its answer.
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
  // The caller's network location.
  'origin',
  'forwarded',
  'x-real-ip',
])

/**
 * Returns the caller's headers that the agent gets, by lower-case name. Drops `x-broker-*`, because
 * only the broker sets those headers. Drops names with an underscore too: CGI and WSGI servers read
 * `X_Broker_Caller_ID` as `X-Broker-Caller-ID`.
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

/** Returns the headers that `Connection` names: they end at this hop as well. */
function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}
