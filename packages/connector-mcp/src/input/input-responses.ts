import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject, JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

const ACTIONS: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel'])

/**
 * Returns the responses to requests of the server. Responses to other requests are ignored.
 * @param keys The keys of the requests
 * @throws JsonRpcError -32602
 */
export function readResponses(keys: readonly string[], responses: JsonObject): Readonly<Record<string, JsonObject>> {
  const answered = keys.filter((key) => Object.hasOwn(responses, key))
  return Object.fromEntries(answered.map((key) => [key, readResponse(key, responses[key])]))
}

function readResponse(key: string, response: unknown): JsonObject {
  if (isJsonObject(response) && ACTIONS.has(response['action'])) return response
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: inputResponses[${JSON.stringify(key)}] must be an object with the action accept, decline or cancel`,
  )
}

/** Returns the requests without a response. */
export function openRequests(
  requests: Readonly<Record<string, JsonObject>>,
  responses: Readonly<Record<string, JsonObject>>,
): Readonly<Record<string, JsonObject>> {
  return Object.fromEntries(Object.entries(requests).filter(([key]) => !Object.hasOwn(responses, key)))
}
