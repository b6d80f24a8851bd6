import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

/**
 * Returns `params.configuration.timeout`, given in seconds, in ms; undefined if the caller set
 * none.
 * @throws JsonRpcError -32602 if the value is not a number above 0
 */
export function readTimeoutMs(params: JsonObject | undefined): number | undefined {
  const configuration = params?.['configuration']
  if (typeof configuration !== 'object' || configuration === null || !Object.hasOwn(configuration, 'timeout')) {
    return undefined
  }
  const timeout: unknown = Reflect.get(configuration, 'timeout')
  if (typeof timeout === 'number' && timeout > 0) return milliseconds(timeout)
  throw invalidTimeout('params.configuration.timeout', JSON.stringify(timeout))
}

/**
 * Reads the time-out as {@link readTimeoutMs} does. An invalid value means the default, for requests
 * that have no error for it.
 */
export function lenientTimeoutMs(params: JsonObject | undefined): number | undefined {
  try {
    return readTimeoutMs(params)
  } catch {
    return undefined
  }
}

export function invalidTimeout(name: string, given: string): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: ${name} is ${given.slice(0, 64)}; it must be a number of seconds above 0`,
  )
}

/** Converts seconds to whole milliseconds, from 1 to the largest safe integer. */
export function milliseconds(seconds: number): number {
  return Math.min(Math.max(1, Math.round(seconds * 1000)), Number.MAX_SAFE_INTEGER)
}
