import process from 'node:process'

import type { AgentQuery } from '../requests/agent-query.ts'

// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const { validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http')

/**
 * Returns the headers for the agent as names and values in turn: the broker's own headers and the
 * caller's, without Connection and Content-Length, which come with the connection.
 * `X-Broker-Caller-ID` names the verified caller; the caller cannot set it.
 * @param trace The headers of a recorded call's span, by lower-case name. They replace the caller's
 */
export function requestHeaders(host: string, query: AgentQuery, trace?: AgentQuery['headers']): string[] {
  const { callerId, hops, mode, streamId } = query
  const headers = trace === undefined ? query.headers : { ...query.headers, ...trace }
  const sent = [
    'Host',
    host,
    'Content-Type',
    'application/json',
    'Accept',
    mode === 'stream' ? 'text/event-stream' : 'application/json',
    'Accept-Encoding',
    'identity',
    'X-Broker-Caller-ID',
    callerId,
    'X-Broker-Hops',
    String(hops),
  ]
  if (streamId !== undefined) sent.push('X-Broker-Stream-ID', streamId)
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined && isCarriable(name, value)) sent.push(name, value)
  }
  return sent
}

/** Headers that frame the message or apply to this hop alone. */
const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/**
 * Returns true if HTTP can carry a header in addition to the broker's own. The gateway of this
 * version sends no other, but a node of another version may.
 */
function isCarriable(name: string, value: string): boolean {
  // A node of an older version may forward names that some servers read as the broker's own.
  if (name.includes('_') || FRAMING.has(name.toLowerCase())) return false
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

/** The headers of an agent's response that a caller gets who speaks an official version of A2A. */
const RELAYED = ['a2a-extensions', 'x-a2a-extensions', 'a2a-version', 'retry-after'] as const

/** Only with status 401: clients read it with any status. */
const CHALLENGE = 'www-authenticate'

/** Longer values are dropped. */
const MAX_CHARACTERS = 4_096

// Header values that every HTTP implementation can carry (RFC 9110, section 5.5).
const CARRIABLE = /^[\t\u0020-\u007e]*$/

/** Returns the headers that the caller gets, by lower-case name; undefined if there are none. */
export function relayedHeaders(
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> | undefined {
  let relayed: Record<string, string> | undefined
  for (const name of status === 401 ? [...RELAYED, CHALLENGE] : RELAYED) {
    const value = headers[name]
    if (value === undefined) continue
    const text = typeof value === 'string' ? value : value.join(', ')
    if (text.length <= MAX_CHARACTERS && CARRIABLE.test(text)) (relayed ??= {})[name] = text
  }
  return relayed
}
