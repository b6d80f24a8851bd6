import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { JsonRpcError, Steps } from '@signalbox/http-kit'
import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { checkJson, internalError, isJsonObject, readJson } from '@signalbox/http-kit/internal'

import type { A2aExchange } from '../a2a-exchange.ts'
import type { AgentAnswer, CallProtocol } from '../gateway/call-protocol.ts'
import { isSuccess, rpcAnswer } from '../gateway/call-protocol.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import { rpcFailures } from '../stream/native-events.ts'
import type { WireVersion } from '../wire/index.ts'
import { ANY_KEYS } from '../wire/index.ts'
import type { ErrorDetails } from './errors.ts'
import { A2A_CODES, NativeError } from './errors.ts'

const PROTOCOLS: { readonly [V in WireVersion]: CallProtocol } = { '1.0': protocolOf('1.0'), '0.3': protocolOf('0.3') }

/** Returns the protocol of official calls in a version of A2A. */
export function nativeProtocol(version: WireVersion): CallProtocol {
  return PROTOCOLS[version]
}

function protocolOf(version: WireVersion): CallProtocol {
  return {
    wire: { version, answer: 'native' },
    notFound: agentNotFound,
    queryFailure: nativeQueryFailure,
    *answer(exchange, agentId, id = 'null', reply) {
      const said = yield* nativeAnswer(agentId, reply)
      if ('result' in said) yield* exchange.succeed(id, ownCard(exchange, agentId, said.result), reply.headers)
      else yield* exchange.failAsAgent(id, said.error, reply.headers)
    },
    streamFailures: (id = 'null') => rpcFailures(id),
  }
}

/** Returns an extended card as the gateway shows it: a client uses the addresses in it. Other results are unchanged. */
function ownCard({ official, cards, request }: A2aExchange, agentId: string, result: Uint8Array): Uint8Array {
  if (official?.method?.operation !== 'extended-card' || cards === undefined) return result
  const card = readJson(decodeText(result) ?? '')?.value
  if (!isJsonObject(card)) return result
  const version = official.version === '1.0' ? '1.0' : 'both'
  return encodeText(JSON.stringify(cards.extended(card, agentId, version, request)))
}

const { AUTHENTICATION_FAILED, FORBIDDEN, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST } = JSON_RPC_CODES

/** Time after which a client may repeat a call, in seconds. */
const RETRY_BUSY_SECONDS = 1
const RETRY_UNREACHABLE_SECONDS = 5
const RETRY_FULL_SECONDS = 30

/** The longest time that an agent may ask its clients to wait, in seconds. */
const MAX_RETRY_SECONDS = 86_400

/**
 * Returns the agent's result or error, a slice of its response.
 * @throws NativeError for every other outcome
 */
function* nativeAnswer(agentId: string, reply: AgentReply): Steps<AgentAnswer> {
  if (reply.failure !== undefined || !reply.executed) throw failed(agentId, reply)
  const json = yield* checkJson(reply.body, ANY_KEYS)
  const said = 'members' in json ? rpcAnswer(json.members, isSuccess(reply)) : undefined
  if (said === undefined || said === 'invalid') throw refusal(agentId, reply) ?? invalidResponse(agentId, reply)
  return said
}

function agentNotFound(agentId: string): NativeError {
  return new NativeError(INTERNAL_ERROR, 'AGENT_NOT_FOUND', `agent not found: ${agentId}`, unsent(agentId))
}

/** Returns the error for a failed Query, or undefined if the error is not one of the broker's. */
function nativeQueryFailure(agentId: string, error: unknown): JsonRpcError | undefined {
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
    case 'inbox_full':
      return new NativeError(INTERNAL_ERROR, 'INBOX_FULL', error, {
        ...unsent(agentId),
        retryAfterSeconds: RETRY_FULL_SECONDS,
      })
    case 'unknown':
      return new NativeError(INTERNAL_ERROR, 'OUTCOME_UNKNOWN', error, { metadata: { agentId } })
    case 'key_reused':
      return new NativeError(INVALID_PARAMS, 'IDEMPOTENCY_KEY_REUSED', `invalid params: ${error}`)
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
