import { Buffer } from 'node:buffer'

import { decodeText, encodeText } from '@signalbox/broker-core'
import type { JsonObject, Steps } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { allSteps, checkJson, isJsonObject, readJson } from '@signalbox/http-kit/internal'

import { isSuccess } from '../../gateway/call-protocol.ts'
import { A2A_REASONS, ERROR_INFO } from '../../native/errors.ts'
import type { AgentQuery, RestCall } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { ClientBytes, ClientText, EventConverter } from '../../stream/events.ts'
import type { ServerSentEvent } from '../../stream/event-reader.ts'
import type { StreamFailure } from '../../stream/failures.ts'
import { fromBytes } from '../../stream/native-events.ts'
import type { Operation } from '../../wire/index.ts'
import { ANY_KEYS, findMethod, parseForTranslation } from '../../wire/index.ts'

/** The code of each reason of A2A. */
const CODES: ReadonlyMap<string, number> = new Map([...A2A_REASONS].map(([code, reason]) => [reason, code]))

/** Members that the path of an operation names; those of a GET and a DELETE that are left are its query. */
const SHAPES: { readonly [O in Operation]: { readonly method: RestCall['method']; readonly path: string } } = {
  send: { method: 'POST', path: '/message:send' },
  stream: { method: 'POST', path: '/message:stream' },
  get: { method: 'GET', path: '/tasks/{id}' },
  list: { method: 'GET', path: '/tasks' },
  cancel: { method: 'POST', path: '/tasks/{id}:cancel' },
  // The text of the specification has POST, the SDKs and its Protocol Buffers have GET.
  resubscribe: { method: 'GET', path: '/tasks/{id}:subscribe' },
  'push-create': { method: 'POST', path: '/tasks/{taskId}/pushNotificationConfigs' },
  'push-get': { method: 'GET', path: '/tasks/{taskId}/pushNotificationConfigs/{id}' },
  'push-list': { method: 'GET', path: '/tasks/{taskId}/pushNotificationConfigs' },
  'push-delete': { method: 'DELETE', path: '/tasks/{taskId}/pushNotificationConfigs/{id}' },
  'extended-card': { method: 'GET', path: '/extendedAgentCard' },
}

/**
 * Returns a JSON-RPC request of A2A 1.0 as one of the HTTP+JSON binding, or the error for a request that has no such
 * form: the agent is not asked then.
 */
export function toRest(query: AgentQuery): AgentQuery | JsonRpcError {
  const request = parseForTranslation(decodeText(query.body) ?? '')
  const { method: name, params = {} } = isJsonObject(request) ? request : {}
  const method = typeof name === 'string' ? findMethod(name)?.method : undefined
  if (method === undefined) {
    return new JsonRpcError(JSON_RPC_CODES.METHOD_NOT_FOUND, 'the agent speaks HTTP+JSON, which has no such method')
  }
  const { method: verb, path } = SHAPES[method.operation]
  const { tenant, ...members }: JsonObject = isJsonObject(params) ? params : {}
  const named: string[] = []
  let missing: string | undefined
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, member: string) => {
    const value = members[member]
    if (typeof value !== 'string' || value === '') missing = member
    named.push(member)
    return encodeURIComponent(String(value))
  })
  if (missing !== undefined) {
    return new JsonRpcError(
      JSON_RPC_CODES.INVALID_PARAMS,
      `invalid params: ${missing} must be a text that is not empty`,
    )
  }
  const below = typeof tenant === 'string' && tenant !== '' ? `/${encodeURIComponent(tenant)}${filled}` : filled
  const left = Object.entries(members).filter(([member]) => !named.includes(member))
  if (verb === 'POST') {
    return { ...query, body: encodeText(JSON.stringify(Object.fromEntries(left))), rest: { method: verb, path: below } }
  }
  const plain = left.filter(([, value]) => isPlain(value))
  const text = new URLSearchParams(plain.map(([member, value]): [string, string] => [member, String(value)])).toString()
  return { ...query, rest: { method: verb, path: text === '' ? below : `${below}?${text}` } }
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/**
 * Returns the JSON-RPC answer that an answer of the HTTP+JSON binding means. An answer that is neither a result nor an
 * error of A2A is unchanged, and so is one without a body: its HTTP status decides.
 */
export function fromRest(reply: AgentReply): AgentReply {
  if (reply.failure !== undefined || !reply.executed) return reply
  if (isSuccess(reply)) {
    if (reply.body.byteLength === 0) return { ...reply, body: response('result', '{}') }
    if ('problem' in allSteps(checkJson(reply.body, ANY_KEYS))) return reply
    return { ...reply, body: Buffer.concat([RESULT_BEGIN, reply.body, RESULT_END]) }
  }
  const text = decodeText(reply.body)
  const error = text === undefined ? undefined : rpcError(readJson(text)?.value)
  return error === undefined ? reply : { ...reply, body: response('error', JSON.stringify(error)) }
}

/** Returns the JSON-RPC error of a google.rpc.Status, by the reason in its details; undefined if there is none. */
function rpcError(value: unknown): JsonObject | undefined {
  const error = isJsonObject(value) ? value['error'] : undefined
  if (!isJsonObject(error)) return undefined
  const details = Array.isArray(error['details']) ? error['details'] : []
  const info: unknown = details.find((detail) => isJsonObject(detail) && detail['@type'] === ERROR_INFO)
  const reason = isJsonObject(info) ? info['reason'] : undefined
  const code = typeof reason === 'string' ? CODES.get(reason) : undefined
  if (code === undefined) return undefined
  return { code, message: String(error['message'] ?? reason), data: details }
}

const RESULT_BEGIN = encodeText('{"jsonrpc":"2.0","id":null,"result":')
const RESULT_END = encodeText('}')

function response(member: 'result' | 'error', text: string): Uint8Array {
  return encodeText(`{"jsonrpc":"2.0","id":null,"${member}":${text}}`)
}

/** Converts the events of the HTTP+JSON binding, each a result or an error itself, as those of JSON-RPC. */
export class RestAgentEvents implements EventConverter {
  readonly #inner: EventConverter

  constructor(inner: EventConverter) {
    this.#inner = inner
  }

  next(event: ServerSentEvent): ClientText | undefined {
    return this.#inner.next(asRpc(event))
  }

  cutOff(event: ServerSentEvent): ClientText | undefined {
    return this.#inner.cutOff(asRpc(event))
  }

  quiet(now: number): ClientText | undefined {
    return this.#inner.quiet?.(now)
  }

  plainAnswer(body: Uint8Array): Steps<ClientText | ClientBytes> {
    return this.#inner.plainAnswer(body)
  }

  ended(): ClientText {
    return this.#inner.ended()
  }

  broken(): ClientText {
    return this.#inner.broken()
  }

  failure(failure: StreamFailure): ClientText {
    return this.#inner.failure(failure)
  }
}

function asRpc({ event, data }: ServerSentEvent): ServerSentEvent {
  if (event !== 'error') return { event: undefined, data: `{"jsonrpc":"2.0","id":null,"result":${data}}` }
  const error = rpcError(readJson(fromBytes(data))?.value) ?? {
    code: JSON_RPC_CODES.INTERNAL_ERROR,
    message: 'the agent ended the stream with an error',
  }
  const text = JSON.stringify({ jsonrpc: '2.0', id: null, error })
  return { event: undefined, data: Buffer.from(text).toString('latin1') }
}
