import { isJsonObject, memberText } from '@signalbox/http-kit'

/** The answer to the caller, as JSON source text: a `result`, or the agent's own `error`. */
export type AgentAnswer = { readonly result: string } | { readonly error: string }

/**
 * Returns the result or error of a JSON-RPC response, as slices of its text; `invalid` for an error
 * that cannot be passed on, undefined for anything else. An error counts with any HTTP status, a
 * result only with a successful one.
 */
export function rpcAnswer(text: string, value: unknown, success: boolean): AgentAnswer | 'invalid' | undefined {
  if (!isJsonObject(value) || value['jsonrpc'] !== '2.0') return undefined
  const { error } = value
  if (isRpcError(error)) return { error: memberText(text, 'error') ?? '' }
  if (!success) return undefined
  // A malformed error cannot be passed on, but it is not a success either.
  if (error !== undefined && error !== null) return 'invalid'
  return Object.hasOwn(value, 'result') ? { result: memberText(text, 'result') ?? '' } : undefined
}

/** Returns true for a JSON-RPC error: its code is an integer and its message is a string. */
export function isRpcError(error: unknown): boolean {
  return isJsonObject(error) && Number.isInteger(error['code']) && typeof error['message'] === 'string'
}

/** Returns true for HTTP 2xx. */
export function isSuccess({ status }: { readonly status: number }): boolean {
  return status >= 200 && status <= 299
}
