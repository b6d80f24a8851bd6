import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'

import { METADATA_PATH } from '@signalbox/connector-mcp'
import { fastifyCorsOptions } from '@signalbox/http-kit'

import type { Config } from '../config/schema.ts'

/** Response headers of the agent protocol, which answers at `/a2a` expose. */
const A2A_EXPOSED = ['A2A-Extensions']

/** Response headers of commands and queries, which answers at `/ce` expose. */
const CE_EXPOSED = ['Idempotency-Replayed']

/** Response headers that clients in browsers need in the OAuth mode. */
const OAUTH_EXPOSED = ['WWW-Authenticate']

/** The longest list of requested headers that is searched, in characters. */
const MAX_ASKED = 2_048

/** Returns the CORS headers of the answer to a request; `undefined` for tools and agents, which send no Origin. */
export type Cors = (request: IncomingMessage) => OutgoingHttpHeaders | undefined

/**
 * Returns the CORS of the shared listener.
 * @param oauth `true` if `/mcp` is a protected resource of OAuth, whose metadata has its own CORS
 */
export function corsOf({ cors, connectors }: Pick<Config, 'cors' | 'connectors'>, oauth: boolean): Cors {
  const { origin: allowed, methods, allowedHeaders, exposedHeaders, credentials, maxAge } = fastifyCorsOptions(cors)
  const protocols = protocolHeaders(connectors)
  const asked = new Set(protocols.map((name) => name.toLowerCase()))
  const exposed = oauth ? [...exposedHeaders, ...OAUTH_EXPOSED] : exposedHeaders

  const answerHeaders = (origin: string, exposedNames: readonly string[]): OutgoingHttpHeaders => {
    const headers: OutgoingHttpHeaders = {}
    if (typeof allowed !== 'string') headers['vary'] = 'Origin'
    if (typeof allowed === 'string') headers['access-control-allow-origin'] = allowed
    else if (allowed.includes(origin)) headers['access-control-allow-origin'] = origin
    if (credentials) headers['access-control-allow-credentials'] = 'true'
    headers['access-control-expose-headers'] = exposedNames.join(', ')
    return headers
  }
  return ({ headers, method, url = '' }) => {
    const { origin } = headers
    if (origin === undefined || (oauth && url.startsWith(METADATA_PATH))) return undefined
    if (method !== 'OPTIONS') {
      return answerHeaders(origin, [...exposed, ...exposedAt(url)])
    }
    // A preflight that asks for a header of a protocol allows all of them.
    const all = asksFor(asked, headers['access-control-request-headers'])
    return {
      ...answerHeaders(origin, exposed),
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': (all ? [...allowedHeaders, ...protocols] : allowedHeaders).join(', '),
      'access-control-max-age': String(maxAge),
    }
  }
}

/** Returns the response headers that only answers at this URL expose. */
function exposedAt(url: string): readonly string[] {
  if (url.startsWith('/a2a/')) return A2A_EXPOSED
  return url.startsWith('/ce/') ? CE_EXPOSED : []
}

/** Returns the request headers of the enabled protocols. */
function protocolHeaders({ mcp, a2a, ce }: Config['connectors']): readonly string[] {
  return [
    ...(mcp.enable ? ['Mcp-Method', 'Mcp-Name'] : []),
    ...(a2a.enable ? ['A2A-Version', 'A2A-Extensions', 'X-A2A-Extensions'] : []),
    ...(ce.enable ? ['Idempotency-Key'] : []),
  ]
}

function asksFor(names: ReadonlySet<string>, header: string | undefined): boolean {
  if (header === undefined || header.length > MAX_ASKED) return false
  return header.split(',').some((name) => names.has(name.trim().toLowerCase()))
}
