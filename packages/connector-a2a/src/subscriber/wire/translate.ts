import { decodeText, encodeText } from '@signalbox/broker-core'
import { JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject, jsonRpcErrorText, parseJson } from '@signalbox/http-kit/internal'

import { isRpcError } from '../../gateway/call-protocol.ts'
import type { AgentQuery, WireRequest } from '../../requests/agent-query.ts'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { A2aMethod, WireVersion } from '../../wire/index.ts'
import {
  ANY_KEYS,
  asksForPush,
  calledMethod,
  findMethod,
  parseForTranslation,
  pushNotSupported,
  translateError,
  translateHeaders,
  translateRequest,
  translateResult,
  UntranslatableError,
} from '../../wire/index.ts'
import { invalidResponse } from '../agent-failures.ts'

/** A request in the agent's version, and the method that its caller called. */
interface TranslatedQuery {
  readonly query: AgentQuery
  /** Undefined for a method that A2A does not define, which is not translated. */
  readonly method: A2aMethod | undefined
}

/** Returns a request in its own version. Agents take a request without a version for A2A 0.3. */
export function inOwnVersion(query: AgentQuery, version: WireVersion): AgentQuery {
  return { ...query, headers: translateHeaders(version, version, query.headers) }
}

/**
 * Translates a request.
 * @throws JsonRpcError -32602 if a member has an invalid value, -32004 if the target has no such method, -32003 for push notifications
 */
export function translateQuery(
  query: AgentQuery,
  { version: from, answer }: WireRequest,
  to: WireVersion,
  tenant: string | undefined,
): TranslatedQuery {
  const headers = translateHeaders(from, to, query.headers)
  const request = parseForTranslation(decodeText(query.body) ?? '')
  const { id, method: name, params: given } = isJsonObject(request) ? request : {}
  const method = typeof name === 'string' ? findMethod(name)?.method : undefined
  if (method === undefined) return { query: { ...query, headers }, method }
  const params = isJsonObject(given) ? given : undefined
  // The answers of a tool call are the agent's own, and so are its notifications.
  if (answer !== 'agent' && asksForPush(method, params)) throw pushNotSupported(to)
  const translated = translateRequest(method, from, to, params, tenant)
  const called = calledMethod(method, from, to, params).names[to]
  const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id, method: called, params: translated }))
  return { query: { ...query, headers, body }, method }
}

/**
 * Translates the response in a reply. A reply without a JSON-RPC response is returned unchanged: its caller gets an
 * error of the gateway.
 */
export function translateReply(reply: AgentReply, method: A2aMethod, from: WireVersion, to: WireVersion): AgentReply {
  const translated = { ...reply, headers: relayedHeaders(reply, from, to) }
  if (reply.failure !== undefined) return translated
  try {
    const body = translateBody(reply.body, method, from, to)
    return body === undefined ? translated : { ...translated, body: encodeText(body) }
  } catch (error) {
    if (error instanceof UntranslatableError) return { ...translated, ...invalidResponse(reply.status) }
    if (error instanceof JsonRpcError) return { ...translated, body: encodeText(jsonRpcErrorText(error)) }
    throw error
  }
}

/** Returns the headers of an answer in the caller's version. */
export function relayedHeaders(
  { headers }: AgentReply,
  from: WireVersion,
  to: WireVersion,
): Readonly<Record<string, string>> {
  return headers === undefined ? {} : translateHeaders(from, to, headers)
}

/** Returns the reply to a request that cannot be translated: it did not reach the agent. */
export function refusedTranslation(error: JsonRpcError): AgentReply {
  const body = encodeText(jsonRpcErrorText(error))
  return { executed: true, error: '', status: 200, body, whole: true, unsent: true }
}

/**
 * Returns undefined if the body has no JSON-RPC response.
 * @throws UntranslatableError, and JsonRpcError for a result that the caller's version answers with an error
 */
function translateBody(bytes: Uint8Array, method: A2aMethod, from: WireVersion, to: WireVersion): string | undefined {
  const text = decodeText(bytes)
  // Checks the limits before translation walks the value.
  if (text === undefined || 'problem' in parseJson(text, ANY_KEYS)) return undefined
  const response = parseForTranslation(text)
  if (!isJsonObject(response) || response['jsonrpc'] !== '2.0') return undefined
  const { error, result } = response
  if (isJsonObject(error) && isRpcError(error)) return responseText({ error: translateError(from, to, error) })
  if ((error !== undefined && error !== null) || !Object.hasOwn(response, 'result')) return undefined
  return responseText({ result: translateResult(method, from, to, result) })
}

/** Returns a response without the caller's id, which the gateway adds. */
function responseText(content: { readonly result: unknown } | { readonly error: unknown }): string {
  return JSON.stringify({ jsonrpc: '2.0', id: null, ...content })
}
