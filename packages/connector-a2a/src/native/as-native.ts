import { JSON_RPC_CODES } from '@signalbox/http-kit'
import type { JsonRpcError } from '@signalbox/http-kit'

import { NativeError } from './native-error.ts'

/** The errors that every caller of the gateway can get, by code: reason and HTTP status. */
const COMMON: ReadonlyMap<number, { readonly reason: string; readonly status?: number }> = new Map([
  [JSON_RPC_CODES.AUTHENTICATION_FAILED, { reason: 'UNAUTHENTICATED', status: 401 }],
  [JSON_RPC_CODES.FORBIDDEN, { reason: 'FORBIDDEN', status: 403 }],
  [JSON_RPC_CODES.INTERNAL_ERROR, { reason: 'INTERNAL' }],
])

/** Returns an error of the gateway as an official client gets it. Errors of JSON-RPC itself are the same for all. */
export function asNative(error: JsonRpcError): JsonRpcError {
  const common = error instanceof NativeError ? undefined : COMMON.get(error.code)
  if (common === undefined) return error
  const { reason, status = error.status } = common
  return new NativeError(error.code, reason, error.message, {
    id: error.id,
    cause: error.cause,
    ...(status === undefined ? {} : { status }),
  })
}
