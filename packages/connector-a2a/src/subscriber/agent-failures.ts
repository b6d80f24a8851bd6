import { isBrokerError } from '@signalbox/broker-core'
import type { FailureKind } from '@signalbox/http-kit/internal'
import { failureOf } from '@signalbox/http-kit/internal'

import type { AgentFailure, AgentReply } from '../requests/agent-reply.ts'

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

/**
 * Returns the reply for a request that failed because the store takes no writes. The caller's node throws the error again.
 * @throws the error, if it is another one
 */
export function storeFailure(error: unknown): AgentReply {
  if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) return notExecuted('no_store', error.message)
  throw error
}

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
const REASONS: Readonly<Record<Exclude<FailureKind, 'not_http'>, string>> = {
  refused: 'connection refused',
  closed: 'the connection was closed before a response came',
  unknown_host: 'host not found',
  no_route: 'no route to the host',
  connect_timeout: 'the connection was not accepted in time',
  timeout: 'the connection was not accepted in time',
  no_socket: 'no connection can be made',
  tls: 'its certificate is not trusted, or TLS failed',
  proxy: NO_TUNNEL,
  address: 'its address may not be called',
  other: 'no connection',
}

/**
 * Returns the reply for an exchange that failed before the head of a response arrived.
 * @param written `false` if no byte of the request was written
 */
export function connectionFailure(error: unknown, written: boolean): AgentReply {
  const { kind, unconnected } = failureOf(error)
  if (kind === 'not_http') return invalidResponse(0)
  const reply = unreachable(REASONS[kind])
  return !written || unconnected ? unsent(reply) : reply
}
