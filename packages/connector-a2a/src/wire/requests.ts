import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import type { WireVersion } from '@signalbox/registry'

import type { A2aMethod } from './methods.ts'

/**
 * Translates the params of a request.
 * @param tenant the tenant of the agent's 1.0 interface, which a request of 0.3 cannot name
 * @throws JsonRpcError -32602 if a member has an invalid value, -32004 if the target has no such method
 */
export function translateRequest(
  method: A2aMethod,
  from: WireVersion,
  to: WireVersion,
  params: JsonObject | undefined,
  tenant?: string,
): JsonObject | undefined {
  if (from === to) return params
  throw new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, `${method.operation} is not translated yet${tenant ?? ''}`)
}
