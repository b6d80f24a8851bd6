import { validateHeaderName, validateHeaderValue } from 'node:http'

import type { AgentQuery } from '@signalbox/registry'

/**
 * What the agent is sent, as names and values in turn: the broker's own headers and the caller's (A5). The agent learns
 * who calls from `X-Broker-Caller-ID`, whatever the caller said.
 */
export function requestHeaders(host: string, query: AgentQuery): string[] {
  const { body, callerId, headers, mode, streamId } = query
  const sent = [
    'Host',
    host,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.byteLength),
    'Accept',
    mode === 'stream' ? 'text/event-stream' : 'application/json',
    'Accept-Encoding',
    'identity',
    'X-Broker-Caller-ID',
    callerId,
  ]
  if (streamId !== undefined) sent.push('X-Broker-Stream-ID', streamId)
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) sent.push(name, value)
  }
  return sent
}

/** The headers without what HTTP cannot carry. The gateway passes on none of it, but a Query may come from anywhere. */
export function carriable(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name, value]) => isCarriable(name, value)))
}

function isCarriable(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
