import type { BrokerError } from '@signalbox/broker-core'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

/** What a caller is told whom the policy does not let call an agent (S4). */
export function forbidden(refusal: BrokerError): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.FORBIDDEN, 'forbidden', { cause: refusal })
}
