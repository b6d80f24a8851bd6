import { Buffer } from 'node:buffer'

import { decodeText, isBrokerError } from '@signalbox/broker-core'
import type { Steps } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import type { MemberBytes } from '@signalbox/http-kit/internal'
import {
  checkJson,
  internalError,
  isJsonObject,
  isJsonRpc,
  memberText,
  readJson,
  trimmedJson,
} from '@signalbox/http-kit/internal'

import type { A2aExchange } from '../a2a-exchange.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentRequestOptions } from '../requests/agent-requests.ts'
import type { FailureEncoder } from '../stream/events.ts'
import { ANY_KEYS } from '../wire/index.ts'

/** A protocol in which callers call agents: the gateway's own dialect, or a binding of A2A. */
export interface CallProtocol {
  /** The version of the request, if the serving node needs to know it. */
  readonly wire?: AgentRequestOptions['wire']
  /** Returns the error for an agent that is not registered. */
  notFound(agentId: string): JsonRpcError
  /**
   * Returns the error for a failed Query, or undefined if the error is not one of the broker's.
   */
  queryFailure(agentId: string, error: unknown): JsonRpcError | undefined
  /** Answers with the agent's reply, a piece of work at a time. Call it only for replies that opened no stream. */
  answer(exchange: A2aExchange, agentId: string, id: string | undefined, reply: AgentReply): Steps<void>
  /** Returns the encoder of the errors that end a stream; undefined for that of the gateway's own events. */
  streamFailures(id: string | undefined): FailureEncoder | undefined
}

/** The gateway's own dialect. The agent gets requests unchanged. */
export const DIALECT: CallProtocol = {
  notFound: agentNotFound,
  queryFailure: (_agentId, error) => queryFailure(error),
  *answer(exchange, agentId, id = 'null', reply) {
    const said = yield* agentAnswer(agentId, reply)
    if ('result' in said) yield* exchange.succeed(id, said.result)
    else yield* exchange.failAsAgent(id, said.error)
  },
  streamFailures: () => undefined,
}

/**
 * The stream that the gateway requests itself, in the gateway's own events. The agent gets the
 * request in the version of A2A that it speaks.
 */
export const OWN_STREAM = { ...DIALECT, wire: { version: '0.3', answer: 'events' } } as const satisfies CallProtocol

/** The most bytes of a refusal's body that the caller gets. */
const MAX_SHOWN_BYTES = 65_536

/**
 * Returns the answer that a reply means, by the first row of decision 0010's table that matches.
 * The agent's result or error is a slice of its response, byte for byte.
 * @throws JsonRpcError for every outcome that the gateway answers with its own error
 */
export function* agentAnswer(agentId: string, reply: AgentReply): Steps<AgentAnswer> {
  if (reply.failure !== undefined || !reply.executed) throw failed(agentId, reply)
  const json = yield* checkJson(reply.body, ANY_KEYS)
  const said = 'members' in json ? rpcAnswer(json.members, isSuccess(reply)) : undefined
  if (said === 'invalid') throw invalidResponse()
  if (said !== undefined) return said
  if (!isSuccess(reply)) throw refused(reply)
  if ('problem' in json) throw invalidResponse()
  return { result: trimmedJson(reply.body) }
}

function failed(agentId: string, { failure, error, status }: AgentReply): JsonRpcError {
  switch (failure) {
    case 'not_found':
      return agentNotFound(agentId)
    case 'timeout':
      return agentTimeout()
    case 'unreachable':
    case 'unavailable':
    case 'unknown':
      return new JsonRpcError(JSON_RPC_CODES.AGENT_UNAVAILABLE, error)
    case 'key_reused':
      return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${error}`)
    case 'busy':
    case 'inbox_full':
    case 'too_large':
      return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, error)
    case 'invalid_response':
      return invalidResponse(status)
    default:
      return internalError(new Error(error))
  }
}

function agentNotFound(agentId: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.AGENT_NOT_FOUND, `agent not found: ${agentId}`)
}

function agentTimeout(): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.AGENT_TIMEOUT, 'agent timeout')
}

function invalidResponse(status = 200): JsonRpcError {
  // Status 0: the agent sent no HTTP response.
  const which = status === 0 || (status >= 200 && status < 300) ? '' : `: HTTP ${status}`
  return new JsonRpcError(JSON_RPC_CODES.INVALID_RESPONSE, `invalid response from agent${which}`)
}

/**
 * Statuses with which an agent refuses a request.
 */
const APPLICATION_ERRORS: ReadonlySet<number> = new Set([400, 401, 403, 404, 409, 422, 500])

function refused({ status, body }: AgentReply): JsonRpcError {
  if (!APPLICATION_ERRORS.has(status)) return invalidResponse(status)
  return new JsonRpcError(JSON_RPC_CODES.AGENT_UNAVAILABLE, `agent rejected the request: HTTP ${status}`, {
    data: { status, body: shownText(body) },
  })
}

/** Returns the beginning of a body as text, without a character that the limit cuts in half. */
function shownText(body: Uint8Array): string {
  if (body.byteLength <= MAX_SHOWN_BYTES) {
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
  }
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(body.subarray(0, MAX_SHOWN_BYTES), { stream: true })
}

/**
 * Returns the caller's error for a failed Query, or undefined if the error is not one of the
 * broker's.
 */
function queryFailure(error: unknown): JsonRpcError | undefined {
  if (isBrokerError(error, 'REQUEST_TIMEOUT') || isBrokerError(error, 'NO_SUBSCRIBER')) return agentTimeout()
  if (isBrokerError(error, 'MESSAGE_TOO_LARGE')) {
    const { message } = error
    return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${message}`, { status: 413 })
  }
  if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) {
    return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'the broker is not available; try again later', {
      cause: error,
    })
  }
  return undefined
}

/** The answer to the caller, as JSON source text: a `result` in UTF-8, or the agent's own `error`. */
export type AgentAnswer = { readonly result: Uint8Array } | { readonly error: string }

/**
 * Returns the result or error of a JSON-RPC response, as slices of its text; `invalid` for an error
 * that cannot be passed on, undefined for anything else. An error counts with any HTTP status, a
 * result only with a successful one.
 */
export function rpcAnswer(members: MemberBytes, success: boolean): AgentAnswer | 'invalid' | undefined {
  if (!isJsonRpc(members)) return undefined
  const errorBytes = members.get('error')
  const error = errorBytes && decodeText(errorBytes)
  const result = members.get('result')
  if (error !== undefined && isErrorText(error)) return { error }
  if (!success) return undefined
  // A malformed error cannot be passed on, but it is not a success either.
  if (error !== undefined && error !== 'null') return 'invalid'
  return result === undefined ? undefined : { result }
}

/** Returns true for the source text of a JSON-RPC error. */
function isErrorText(text: string): boolean {
  if (!text.startsWith('{')) return false
  const code = readJson(memberText(text, 'code') ?? '')?.value
  return Number.isInteger(code) && memberText(text, 'message')?.startsWith('"') === true
}

/** Returns true for a JSON-RPC error: its code is an integer and its message is a string. */
export function isRpcError(error: unknown): boolean {
  return isJsonObject(error) && Number.isInteger(error['code']) && typeof error['message'] === 'string'
}

/** Returns true for HTTP 2xx. */
export function isSuccess({ status }: { readonly status: number }): boolean {
  return status >= 200 && status <= 299
}
