import { randomUUID } from 'node:crypto'

import { decodeText, encodeText } from '@signalbox/broker-core'
import type { JsonObject, Steps } from '@signalbox/http-kit'
import { isJsonObject, JSON_RPC_CODES, JsonRpcError, MAX_JSON_DEPTH, parseJsonInSteps } from '@signalbox/http-kit'

import type { Operation } from '../wire/index.ts'
import { METHODS, parseForTranslation } from '../wire/index.ts'

/** The JSON-RPC request of A2A 1.0 that a request of the HTTP+JSON binding means. */
export interface RestRequest {
  /** As the agent gets it. */
  readonly body: Uint8Array
  readonly params: JsonObject
}

/** The envelope is one level of the request. */
const LIMITS = { uniqueKeys: false, maxDepth: MAX_JSON_DEPTH - 1 }

/** Operations that need no member in the body. Some clients send no body for them, others `null`. */
const BODY_IS_OPTIONAL: ReadonlySet<Operation> = new Set<Operation>(['cancel', 'resubscribe'])

/**
 * Returns the JSON-RPC request. A body passes byte for byte if the path and the query set no members.
 * @param members The members that the path and the query set; those of the body count less
 * @param body undefined for a request whose HTTP method has none
 * @throws JsonRpcError -32700 for a body that is not JSON, -32600 for one that is no object or exceeds the limits
 */
export function* restRequest(
  operation: Operation,
  members: JsonObject,
  body: Uint8Array | undefined,
): Steps<RestRequest> {
  const given = body === undefined ? undefined : yield* readBody(operation, body)
  if (given === undefined) return request(operation, JSON.stringify(members), members)
  yield
  const { text, params } = given
  if (Object.keys(members).length === 0) return request(operation, text, params)
  const parsed = parseForTranslation(text)
  const merged = { ...(isJsonObject(parsed) ? parsed : {}), ...members }
  return request(operation, JSON.stringify(merged), merged)
}

function request(operation: Operation, paramsText: string, params: JsonObject): RestRequest {
  const method = METHODS[operation].names['1.0']
  const text = `{"jsonrpc":"2.0","id":"${randomUUID()}","method":"${method}","params":${paramsText}}`
  return { body: encodeText(text), params }
}

function* readBody(
  operation: Operation,
  body: Uint8Array,
): Steps<{ readonly text: string; readonly params: JsonObject } | undefined> {
  if (body.byteLength === 0 && BODY_IS_OPTIONAL.has(operation)) return undefined
  const text = decodeText(body)
  if (text === undefined) throw parseError('not valid UTF-8')
  const json = yield* parseJsonInSteps(text, LIMITS)
  if ('problem' in json) throw json.exceeded === undefined ? parseError(json.problem) : invalid(`is ${json.problem}`)
  const { value } = json
  if (value === null && BODY_IS_OPTIONAL.has(operation)) return undefined
  if (!isJsonObject(value)) throw invalid('must be a JSON object')
  return { text, params: value }
}

function parseError(problem: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.PARSE_ERROR, `parse error: the body is ${problem}`)
}

function invalid(problem: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: the body ${problem}`)
}
