import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject } from '@signalbox/http-kit'
import type { AgentQuery, WireRequest } from '../../requests/agent-query.ts'
import type { WireVersion } from '../../wire/index.ts'

import type { A2aMethod } from '../../wire/index.ts'
import {
  asksForPush,
  calledMethod,
  findMethod,
  parseForTranslation,
  pushNotSupported,
  translateHeaders,
  translateRequest,
} from '../../wire/index.ts'

/** A request in the agent's version, and the method that its caller called. */
export interface TranslatedQuery {
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
