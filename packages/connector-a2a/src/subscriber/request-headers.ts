import { validateHeaderName, validateHeaderValue } from 'node:http'

import type { AgentQuery } from '@signalbox/registry'

/**
 * What the agent is sent, as names and values in turn: the broker's own headers and the caller's (A5), without
 * Connection and Content-Length, which come with the connection. The agent learns
 * who calls from `X-Broker-Caller-ID`, whatever the caller said.
 */
export function requestHeaders(host: string, query: AgentQuery): string[] {
  const { callerId, headers, hops, mode, streamId } = query
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

/** What frames the message or is said for this hop alone. */
const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/** Whether HTTP can carry a header beside ours. The gateway passes on no other, but a Query may come from anywhere. */
function isCarriable(name: string, value: string): boolean {
  // A node of an older version may forward names that some servers take for the broker's own.
  if (name.includes('_') || FRAMING.has(name.toLowerCase())) return false
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
