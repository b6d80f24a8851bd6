import { decodeText, isBrokerError } from '@signalbox/broker-core'
import { internalError, JSON_RPC_CODES, parseJson } from '@signalbox/http-kit'
import type { JsonRpcError } from '@signalbox/http-kit'
import type { AgentReply } from '../requests/agent-reply.ts'

import { ANY_KEYS } from '../gateway/agent-answer.ts'
import type { AgentAnswer } from '../gateway/rpc-response.ts'
import { isSuccess, rpcAnswer } from '../gateway/rpc-response.ts'
import { A2A_CODES } from './error-info.ts'
import type { ErrorDetails } from './error-info.ts'
import { NativeError } from './native-error.ts'

const { AUTHENTICATION_FAILED, FORBIDDEN, INTERNAL_ERROR, INVALID_REQUEST } = JSON_RPC_CODES

/** Time after which a client may repeat a call, in seconds. */
const RETRY_BUSY_SECONDS = 1
const RETRY_UNREACHABLE_SECONDS = 5

/** The longest time that an agent may ask its clients to wait, in seconds. */
const MAX_RETRY_SECONDS = 86_400

/**
 * Returns the agent's result or error, a slice of its response.
 * @throws NativeError for every other outcome
 */
export function nativeAnswer(agentId: string, reply: AgentReply): AgentAnswer {
  if (reply.failure !== undefined || !reply.executed) throw failed(agentId, reply)
  const text = decodeText(reply.body)
  const json = text === undefined ? undefined : parseJson(text, ANY_KEYS)
  const said =
    text !== undefined && json !== undefined && 'value' in json
      ? rpcAnswer(text, json.value, isSuccess(reply))
      : undefined
  if (said === undefined || said === 'invalid') throw refusal(agentId, reply) ?? invalidResponse(agentId, reply)
  return said
}

export function agentNotFound(agentId: string): NativeError {
  return new NativeError(INTERNAL_ERROR, 'AGENT_NOT_FOUND', `agent not found: ${agentId}`, unsent(agentId))
}

/** Returns the error for a failed Query, or undefined if the error is not one of the broker's. */
export function nativeQueryFailure(agentId: string, error: unknown): JsonRpcError | undefined {
  if (isBrokerError(error, 'REQUEST_TIMEOUT') || isBrokerError(error, 'NO_SUBSCRIBER')) return timeout(agentId)
  if (isBrokerError(error, 'MESSAGE_TOO_LARGE')) {
    const text = `invalid request: ${error.message}`
    return new NativeError(INVALID_REQUEST, 'REQUEST_TOO_LARGE', text, { status: 413, ...unsent(agentId) })
  }
  if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) return undefined
  return new NativeError(INTERNAL_ERROR, 'BROKER_UNAVAILABLE', 'the broker is not available; try again later', {
    cause: error,
    retryAfterSeconds: RETRY_UNREACHABLE_SECONDS,
  })
}

function failed(agentId: string, reply: AgentReply): JsonRpcError {
  const { failure, error } = reply
  switch (failure) {
    case 'not_found':
      return agentNotFound(agentId)
    case 'timeout':
      return timeout(agentId)
    case 'unreachable':
    case 'unavailable':
      return unreachable(agentId, reply)
    case 'busy': {
      const details = { ...unsent(agentId), retryAfterSeconds: RETRY_BUSY_SECONDS }
      return new NativeError(INTERNAL_ERROR, 'AGENT_BUSY', error, details)
    }
    case 'too_large':
      return new NativeError(INTERNAL_ERROR, 'RESPONSE_TOO_LARGE', error, { metadata: { agentId } })
    case 'invalid_response':
      return invalidResponse(agentId, reply)
    default:
      return internalError(new Error(error))
  }
}

/**
 * Returns the error for an agent that is offline. Only a request that certainly did not reach the agent may be
 * repeated without a second thought: after a broken connection the agent may have acted.
 */
function unreachable(agentId: string, reply: AgentReply): NativeError {
  const retryAfterSeconds = agentsDelay(reply) ?? RETRY_UNREACHABLE_SECONDS
  const details = reply.unsent === true ? unsent(agentId) : { metadata: { agentId } }
  const again = reply.unsent === true || reply.failure === 'unavailable' ? { retryAfterSeconds } : {}
  return new NativeError(INTERNAL_ERROR, 'AGENT_UNREACHABLE', reply.error, { ...details, ...again })
}

/** Returns the agent's `Retry-After`, if it is a number of seconds. */
function agentsDelay({ headers }: AgentReply): number | undefined {
  const text = headers?.['retry-after']
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined
  return Math.min(Number(text), MAX_RETRY_SECONDS)
}

/** Returns the error for an HTTP status with which an agent, or a proxy before it, refuses a request. */
function refusal(agentId: string, reply: AgentReply): NativeError | undefined {
  const { status, headers } = reply
  const metadata = { agentId, httpStatus: String(status) }
  const refused = `agent rejected the request: HTTP ${status}`
  switch (status) {
    case 401: {
      const challenge = headers?.['www-authenticate'] ?? `Bearer realm="${agentId}"`
      return new NativeError(AUTHENTICATION_FAILED, 'AGENT_UNAUTHENTICATED', refused, { status, metadata, challenge })
    }
    case 403:
      return new NativeError(FORBIDDEN, 'AGENT_FORBIDDEN', refused, { status, metadata })
    case 413:
      return new NativeError(INVALID_REQUEST, 'REQUEST_TOO_LARGE', refused, { status, metadata })
    case 429:
      return new NativeError(INTERNAL_ERROR, 'AGENT_BUSY', refused, { metadata, retryAfterSeconds: agentsDelay(reply) })
    default:
      return undefined
  }
}

function timeout(agentId: string): NativeError {
  return new NativeError(INTERNAL_ERROR, 'AGENT_TIMEOUT', 'agent timeout', { metadata: { agentId } })
}

function invalidResponse(agentId: string, reply: AgentReply): NativeError {
  const { status } = reply
  // Status 0: the agent sent no HTTP response.
  const metadata = status === 0 ? { agentId } : { agentId, httpStatus: String(status) }
  const which = status === 0 || isSuccess(reply) ? '' : `: HTTP ${status}`
  const text = `invalid response from agent${which}`
  return new NativeError(A2A_CODES.INVALID_AGENT_RESPONSE, 'INVALID_AGENT_RESPONSE', text, { metadata })
}

function unsent(agentId: string): ErrorDetails {
  return { metadata: { agentId, executed: 'false' } }
}
