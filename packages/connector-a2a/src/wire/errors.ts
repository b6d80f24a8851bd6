import type { JsonObject } from '@signalbox/http-kit'
import { JsonRpcError } from '@signalbox/http-kit'

import { A2A_CODES, A2A_REASONS, ERROR_INFO, errorDetails } from '../native/errors.ts'
import { defined, isObject } from './json.ts'
import type { WireVersion } from './methods.ts'

const { UNSUPPORTED_OPERATION } = A2A_CODES

/** The range of the codes that A2A itself defines; the others are those of JSON-RPC. */
const LOWEST_A2A_CODE = -32099
const HIGHEST_A2A_CODE = -32001

/** The codes that 0.3 does not define, and the closest that it does. */
const CODES_TO_03: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  // ExtensionSupportRequiredError becomes UnsupportedOperationError.
  [-32008, UNSUPPORTED_OPERATION],
  // VersionNotSupportedError becomes an invalid request.
  [-32009, -32600],
])

const STRUCT = 'type.googleapis.com/google.protobuf.Struct'
const VALUE = 'type.googleapis.com/google.protobuf.Value'

/**
 * Translates a JSON-RPC error of an agent. `data` is an array of typed details in 1.0 and any value in 0.3: other data
 * is wrapped as one detail, and unwrapped on the way back. In 1.0 an error of A2A names its reason (section 9.5).
 */
export function translateError(from: WireVersion, to: WireVersion, error: JsonObject): JsonObject {
  if (from === to) return error
  const { code, message, data } = error
  return to === '1.0'
    ? defined({ code, message, data: withReason(code, details(data)) })
    : defined({ code: CODES_TO_03.get(code) ?? code, message, data: unwrapped(data) })
}

/** Returns the error for a method that the target version does not have. */
export function unsupportedOperation(name: string, to: WireVersion): JsonRpcError {
  const message = `unsupported operation: ${name} has no equivalent in A2A ${to}, which the agent speaks`
  return new JsonRpcError(UNSUPPORTED_OPERATION, message, { data: errorDetails('UNSUPPORTED_OPERATION') })
}

/** Returns the error for push notifications that the client could not read: the agent sends them in its own version. */
export function pushNotSupported(to: WireVersion): JsonRpcError {
  const message = `push notifications are not supported: the agent would send them in A2A ${to}; subscribe to the task, or ask for it`
  const data = errorDetails('PUSH_NOTIFICATION_NOT_SUPPORTED')
  return new JsonRpcError(A2A_CODES.PUSH_NOTIFICATION_NOT_SUPPORTED, message, { data })
}

/** Adds the reason that a code of A2A means, unless the details name one. */
function withReason(code: unknown, given: readonly unknown[] | undefined): readonly unknown[] | undefined {
  if (typeof code !== 'number' || code < LOWEST_A2A_CODE || code > HIGHEST_A2A_CODE) return given
  const reason = A2A_REASONS.get(code)
  if (reason === undefined || given?.some((detail) => isObject(detail) && detail['@type'] === ERROR_INFO)) return given
  return [...errorDetails(reason), ...(given ?? [])]
}

function details(data: unknown): readonly unknown[] | undefined {
  if (data === undefined || data === null) return undefined
  if (Array.isArray(data) && data.every(isDetail)) return data
  return [{ '@type': isObject(data) ? STRUCT : VALUE, value: data }]
}

function unwrapped(data: unknown): unknown {
  if (data === null) return undefined
  const detail: unknown = Array.isArray(data) && data.length === 1 ? data[0] : undefined
  if (!isObject(detail) || !Object.hasOwn(detail, 'value')) return data
  return detail['@type'] === STRUCT || detail['@type'] === VALUE ? detail['value'] : data
}

function isDetail(value: unknown): boolean {
  return isObject(value) && typeof value['@type'] === 'string'
}
