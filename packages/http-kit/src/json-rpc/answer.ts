import { JsonRpcError } from '../errors.ts'
import { JSON_RPC_CODES } from './codes.ts'

/** A JSON-RPC success as text. `id` is the source text of the request's id, `result` JSON text: neither is re-shaped. */
export function successText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

/** A JSON-RPC failure as text. `id` is the source text of the request's id; undefined becomes null. */
export function errorText(id: string | undefined, code: number, message: string, data?: unknown): string {
  const rest = data === undefined ? '' : `,"data":${JSON.stringify(data) ?? 'null'}`
  return `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":{"code":${code},"message":${JSON.stringify(message)}${rest}}}`
}

/** As {@link errorText}, from an error that carries everything but, perhaps, the id. */
export function jsonRpcErrorText(error: JsonRpcError, id: string | undefined = error.id): string {
  return errorText(id, error.code, error.message, error.data)
}

/** What a client is told of an error that is not its own: nothing of its inside. */
export function internalError(cause: unknown, id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'internal error', { id, cause })
}
