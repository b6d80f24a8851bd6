import type { BrokerError } from '@signalbox/broker-core'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

/**
 * Returns the error for a caller that the policy does not allow to call an agent: -32011
 * `forbidden`, without details.
 */
export function forbidden(refusal: BrokerError): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.FORBIDDEN, 'forbidden', { cause: refusal })
}
