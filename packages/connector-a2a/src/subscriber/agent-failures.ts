import type { AgentFailure, AgentReply } from '../requests/agent-reply.ts'
import { undici } from '@signalbox/registry'

const NO_BODY = new Uint8Array(0)

/**
 * Returns the reply for a request that, as far as is known, the agent never processed.
 */
function notExecuted(failure: AgentFailure, error: string): AgentReply {
  return { executed: false, error, failure, status: 0, body: NO_BODY }
}

/** Marks the reply for a request that the agent certainly did not get. */
function unsent(reply: AgentReply): AgentReply {
  return { ...reply, unsent: true }
}

export const AGENT_TIMEOUT = notExecuted('timeout', 'agent timeout')
export const AGENT_BUSY = unsent(notExecuted('busy', 'server busy: concurrency limit reached'))
export const AGENT_GONE = unsent(notExecuted('not_found', 'agent not found'))
export const RESPONSE_TOO_LARGE = notExecuted('too_large', 'agent response too large')
/** For calls that are under way, too. */
export const SHUTTING_DOWN = notExecuted('unavailable', 'agent unavailable: this node is shutting down')
export const ACCEPTED: AgentReply = { executed: true, error: '', status: 202, body: NO_BODY }

/** The gateway cannot get the credentials that the agent needs. The log has the reason. */
export const NO_CREDENTIALS = unsent(unreachable('there are no credentials for it now'))
export const ADDRESS_REFUSED = unsent(unreachable('its address may not be called'))

export function unreachable(reason: string): AgentReply {
  return notExecuted('unreachable', `agent unreachable: ${reason}`)
}

export function agentUnavailable(status: number): AgentReply {
  return { ...notExecuted('unavailable', `agent unavailable: HTTP ${status}`), status }
}

/** Returns the reply for an answer of the agent that is not a valid response. */
export function invalidResponse(status: number): AgentReply {
  return { executed: true, error: '', failure: 'invalid_response', status, body: NO_BODY }
}

const NO_TUNNEL = 'the proxy did not connect to it'

/** The proxy requires credentials that are missing or wrong. */
export const PROXY_REFUSED = unsent(unreachable(NO_TUNNEL))

/**
 * The reasons that callers get for a failed connection. They never contain an address of a name
 * (R8).
 */
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

/** The errors of connections that were not established, so nothing was sent on them. */
const UNCONNECTED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'EADDRNOTAVAIL',
  'EMFILE',
  'AGENT_PROXY_REFUSED',
  'AGENT_ADDRESS_REFUSED',
])

/**
 * Returns the reply for an exchange that failed before the head of a response arrived.
 * @param written `false` if no byte of the request was written
 */
export function connectionFailure(error: unknown, written: boolean): AgentReply {
  if (isNoHttp(error)) return invalidResponse(0)
  const code = codeOf(error)
  const reply = unreachable(
    isTlsCode(code) ? 'its certificate is not trusted, or TLS failed' : (REASONS[code] ?? 'no connection'),
  )
  return !written || UNCONNECTED.has(code) ? unsent(reply) : reply
}

/** Returns true if the received bytes were not HTTP. */
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
  // Every address of the host failed, each for its own reason. The first reason is reported.
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
