import type { AgentFailure, AgentReply } from '@signalbox/registry'

import { undici } from './undici.ts'

const NO_BODY = new Uint8Array(0)

/** A request that the agent never processed, as far as anybody can know (specification, "Transport versus application errors"). */
function notExecuted(failure: AgentFailure, error: string): AgentReply {
  return { executed: false, error, failure, status: 0, body: NO_BODY }
}

export const AGENT_TIMEOUT = notExecuted('timeout', 'agent timeout')
export const AGENT_BUSY = notExecuted('busy', 'server busy: concurrency limit reached')
export const AGENT_GONE = notExecuted('not_found', 'agent not found')
export const RESPONSE_TOO_LARGE = notExecuted('too_large', 'agent response too large')
export const SHUTTING_DOWN = notExecuted('unavailable', 'agent unavailable: this node is shutting down')
export const ACCEPTED: AgentReply = { executed: true, error: '', status: 202, body: NO_BODY }

export const ADDRESS_REFUSED = notExecuted('unreachable', 'agent unreachable: its address may not be called')

export function unreachable(reason: string): AgentReply {
  return notExecuted('unreachable', `agent unreachable: ${reason}`)
}

export function agentUnavailable(status: number): AgentReply {
  return { ...notExecuted('unavailable', `agent unavailable: HTTP ${status}`), status }
}

/** The agent answered, and with what cannot be an answer. */
export function invalidResponse(status: number): AgentReply {
  return { executed: true, error: '', failure: 'invalid_response', status, body: NO_BODY }
}

const NO_TUNNEL = 'the proxy did not connect to it'

/** The proxy wants credentials that it was not given, or others. */
export const PROXY_REFUSED = unreachable(NO_TUNNEL)

/** What callers may know of a failed connection: never an address that a name stands for (R8). */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was closed before a response came',
  EPIPE: 'the connection was closed before a response came',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the host',
  ETIMEDOUT: 'the connection was not accepted in time',
  UND_ERR_CONNECT_TIMEOUT: 'the connection was not accepted in time',
  UND_ERR_SOCKET: 'the connection was closed before a response came',
  EADDRNOTAVAIL: 'no connection can be made',
  EMFILE: 'no connection can be made',
  AGENT_PROXY_REFUSED: NO_TUNNEL,
  AGENT_ADDRESS_REFUSED: 'its address may not be called',
}

/** What a failed exchange with the agent is, before any response of it was seen. */
export function connectionFailure(error: unknown): AgentReply {
  if (isNoHttp(error)) return invalidResponse(0)
  const code = codeOf(error)
  if (isTlsCode(code)) return unreachable('its certificate is not trusted, or TLS failed')
  return unreachable(REASONS[code] ?? 'no connection')
}

/** Whether what came was no HTTP. */
function isNoHttp(error: unknown): boolean {
  const { errors } = undici()
  return (
    error instanceof errors.HTTPParserError ||
    error instanceof errors.HeadersOverflowError ||
    error instanceof errors.ResponseContentLengthMismatchError
  )
}

function isTlsCode(code: string): boolean {
  return /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/.test(code)
}

function codeOf(error: unknown): string {
  // Every address of a host was tried, and each failed in a way of its own: the first is told.
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
