import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject, JsonRpcError, jsonRpcErrorText, parseJson } from '@signalbox/http-kit'
import type { AgentReply } from '../../requests/agent-reply.ts'
import type { WireVersion } from '../../wire/index.ts'

import { ANY_KEYS } from '../../gateway/agent-answer.ts'
import { isRpcError } from '../../gateway/rpc-response.ts'
import type { A2aMethod } from '../../wire/index.ts'
import {
  parseForTranslation,
  translateError,
  translateHeaders,
  translateResult,
  UntranslatableError,
} from '../../wire/index.ts'
import { invalidResponse } from '../agent-failures.ts'

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
