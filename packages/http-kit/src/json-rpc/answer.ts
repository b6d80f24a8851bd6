import { JsonRpcError } from '../errors.ts'
import { JSON_RPC_CODES } from './codes.ts'

/**
 * Returns a JSON-RPC success as text. `id` is the source text of the request's id and `result` is JSON text; both are
 * copied unchanged.
 */
export function successText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

/** Returns a JSON-RPC failure as text. `id` is the source text of the request's id; `undefined` becomes `null`. */
export function errorText(id: string | undefined, code: number, message: string, data?: unknown): string {
  const rest = data === undefined ? '' : `,"data":${JSON.stringify(data) ?? 'null'}`
  return `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":{"code":${code},"message":${JSON.stringify(message)}${rest}}}`
}

/** Returns a JSON-RPC failure as {@link errorText} does. `id` defaults to the id of the error. */
export function jsonRpcErrorText(error: JsonRpcError, id: string | undefined = error.id): string {
  return errorText(id, error.code, error.message, error.data)
}

/**
 * Returns the error that answers an internal failure. The client sees "internal error" only; `cause` is for the log.
 */
export function internalError(cause: unknown, id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'internal error', { id, cause })
}
