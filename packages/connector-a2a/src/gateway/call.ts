import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import type { Broker, BrokerError } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { ConnectionCaller, JsonObject, JsonRpcNotification, JsonRpcRequest } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { hopsOf, hopsProblem, isJsonObject, shownValue } from '@signalbox/http-kit/internal'
import { isAgentId } from '@signalbox/registry'

import { nativeProtocol } from '../native/native-protocol.ts'
import type { OfficialCall } from '../native/official-call.ts'
import type { Operation } from '../wire/index.ts'
import { findMethod } from '../wire/index.ts'
import type { CallProtocol } from './call-protocol.ts'
import { DIALECT } from './call-protocol.ts'

/** A validated request for an agent. */
export interface Call {
  /** The body that the agent gets, byte for byte. */
  readonly body: Uint8Array
  /** The source text of the request's id; undefined is answered as null. */
  readonly id?: string | undefined
  /** The caller's time-out, in ms; undefined if the caller set none. */
  readonly timeoutMs: number | undefined
  readonly protocol: CallProtocol
  /** The operation of A2A; undefined for other methods. */
  readonly operation?: Operation | undefined
  readonly params?: JsonObject | undefined
}

/** Returns true if a call asks for an answer before the agent's work is done. */
export function returnsAtOnce({ params }: Call): boolean {
  const configuration = params?.['configuration']
  if (!isJsonObject(configuration)) return false
  return configuration['returnImmediately'] === true || configuration['blocking'] === false
}

/** Each event of an official stream repeats the id of its request. */
const MAX_STREAM_ID_CHARACTERS = 1_024

/**
 * Reads a request for an agent. A2A has no notifications: an official call without an id is answered with the id null.
 * @throws JsonRpcError -32602 for an invalid time-out of the dialect, -32600 for an id that is too long for a stream
 */
export function readCall(
  headers: IncomingHttpHeaders,
  body: Uint8Array,
  message: JsonRpcRequest | JsonRpcNotification,
  official: OfficialCall | undefined,
): Call {
  const { params } = message
  const id = message.kind === 'request' ? message.id : undefined
  if (official === undefined) {
    const operation = findMethod(message.method)?.method.operation
    return { body, id, timeoutMs: readTimeoutMs(params), protocol: DIALECT, operation, params }
  }
  const operation = official.method?.operation
  if (official.streams && id !== undefined && id.length > MAX_STREAM_ID_CHARACTERS) {
    const problem = `id has ${id.length} characters; a request for a stream may have ${MAX_STREAM_ID_CHARACTERS}`
    throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${problem}`)
  }
  const protocol = nativeProtocol(official.version)
  return { body, id, timeoutMs: nativeTimeoutMs(headers, params), protocol, operation, params }
}

/**
 * Returns the time-out of an official call, in ms; undefined if the caller set none. A2A has no time-out of requests, so
 * `configuration.timeout` counts only where it is valid.
 */
export function nativeTimeoutMs(headers: IncomingHttpHeaders, params: JsonObject | undefined): number | undefined {
  return preferredWaitMs(headers.prefer) ?? lenientTimeoutMs(params)
}

/**
 * Checks a call before its agent is looked up: a refusal must not reveal whether the agent exists.
 * @throws JsonRpcError -32600 for an invalid agent id or too many hops, -32011 if the policy forbids the call
 */
export function assertCallable(
  broker: Broker,
  caller: ConnectionCaller,
  agentId: string,
  headers: IncomingHttpHeaders,
): void {
  assertAgentId(agentId)
  const problem = hopsProblem(hopsOf(headers))
  if (problem !== undefined) throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${problem}`)
  try {
    caller.handle(broker).authorize('call', 'agents', agentId)
  } catch (error) {
    if (!isBrokerError(error, 'FORBIDDEN')) throw error
    throw forbidden(error)
  }
}

function assertAgentId(agentId: string): void {
  if (isAgentId(agentId)) return
  const given = shownText(agentId, 140)
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_REQUEST,
    `invalid request: the agent_id ${given} in the path is invalid; it must be 2 to 128 characters of a-z, 0-9 and -, and must not begin or end with -`,
  )
}

/**
 * Returns the error for a caller that the policy does not allow to call an agent: -32011
 * `forbidden`, without details.
 */
export function forbidden(refusal: BrokerError): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.FORBIDDEN, 'forbidden', { cause: refusal })
}

/**
 * Returns `params.configuration.timeout`, given in seconds, in ms; undefined if the caller set
 * none.
 * @throws JsonRpcError -32602 if the value is not a number above 0
 */
export function readTimeoutMs(params: JsonObject | undefined): number | undefined {
  const configuration = params?.['configuration']
  if (typeof configuration !== 'object' || configuration === null || !Object.hasOwn(configuration, 'timeout')) {
    return undefined
  }
  const timeout: unknown = Reflect.get(configuration, 'timeout')
  if (typeof timeout === 'number' && timeout > 0) return milliseconds(timeout)
  throw invalidTimeout('params.configuration.timeout', shownValue(timeout))
}

/**
 * Reads the time-out as {@link readTimeoutMs} does. An invalid value means the default, for requests
 * that have no error for it.
 */
export function lenientTimeoutMs(params: JsonObject | undefined): number | undefined {
  try {
    return readTimeoutMs(params)
  } catch {
    return undefined
  }
}

function invalidTimeout(name: string, given: string): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: ${name} is ${given.slice(0, 64)}; it must be a number of seconds above 0`,
  )
}

/** Converts seconds to whole milliseconds, from 1 to the largest safe integer. */
function milliseconds(seconds: number): number {
  return Math.min(Math.max(1, Math.round(seconds * 1000)), Number.MAX_SAFE_INTEGER)
}

const WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i

/** Returns the time of `Prefer: wait=n` (RFC 7240, section 4.3), given in seconds, in ms; undefined if absent or 0. */
export function preferredWaitMs(header: string | string[] | undefined): number | undefined {
  const text = typeof header === 'string' ? header : header?.join(', ')
  const seconds = Number((text === undefined ? undefined : WAIT.exec(text)?.[1]) ?? 0)
  return seconds > 0 ? milliseconds(seconds) : undefined
}

/**
 * A `message/stream` request that the gateway builds from the query string of `GET
 * /a2a/{agent_id}/stream`.
 */
interface StreamRequest {
  readonly body: Uint8Array
  /** The time until the agent's headers, in ms; undefined if the caller set none. */
  readonly timeoutMs: number | undefined
}

/**
 * Reads the parameters `message` (text), `contextId` and `timeout` (seconds). All are optional, the
 * first of repeated ones counts, and other parameters are ignored.
 * @throws JsonRpcError -32602 for a timeout that is not a number above 0
 */
export function streamRequest(query: string): StreamRequest {
  const parameters = new URLSearchParams(query)
  const contextId = parameters.get('contextId') ?? undefined
  const timeout = readSeconds(parameters.get('timeout'))
  return {
    body: textRequest({ text: parameters.get('message') ?? '', contextId, timeoutSeconds: timeout }),
    timeoutMs: timeout === undefined ? undefined : milliseconds(timeout),
  }
}

/** A text message for an agent. */
interface TextMessage {
  readonly text: string
  readonly contextId: string | undefined
  readonly timeoutSeconds: number | undefined
}

/** Returns the body of a `message/stream` request with a text message. */
export function textRequest({ text, contextId, timeoutSeconds: timeout }: TextMessage): Uint8Array {
  const params = {
    message: {
      kind: 'message',
      role: 'user',
      messageId: randomUUID(),
      parts: [{ kind: 'text', text }],
      contextId,
    },
    contextId,
    configuration: { blocking: true, timeout },
  }
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method: 'message/stream', params }))
}

function readSeconds(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw invalidTimeout('timeout', JSON.stringify(text))
}

const LABELS: ReadonlySet<string> = new Set([
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/send',
])

/** The label of the one method that A2A 0.3 does not have. */
const LIST = 'tasks/list'

/**
 * Returns the method as a metric label: for official calls its name in A2A 0.3. Any other method is
 * `unknown`, so callers cannot create label values.
 */
export function methodLabel(method: string, official?: OfficialCall): string {
  if (official?.method !== undefined) return official.method.names['0.3'] ?? LIST
  return LABELS.has(method) ? method : 'unknown'
}
