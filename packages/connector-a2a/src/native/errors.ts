import type { OutgoingHttpHeaders } from 'node:http'

import type { JsonRpcErrorOptions } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

const OWN_CHALLENGE = 'Bearer realm="signalbox"'

interface NativeErrorOptions extends ErrorDetails, Omit<JsonRpcErrorOptions, 'data'> {
  /** The header WWW-Authenticate of an error with status 401. @default the gateway's own */
  readonly challenge?: string
}

/** An error of the gateway for a client that speaks an official version of A2A. */
export class NativeError extends JsonRpcError {
  /** The condition; clients decide by it. */
  readonly reason: string
  /** The headers of the answer. */
  readonly headers: OutgoingHttpHeaders

  constructor(
    code: number,
    reason: string,
    message: string,
    { metadata, retryAfterSeconds, challenge = OWN_CHALLENGE, ...options }: NativeErrorOptions = {},
  ) {
    super(code, message, {
      ...options,
      data: errorDetails(reason, { metadata, retryAfterSeconds }),
    })
    this.reason = reason
    this.headers = {
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
      ...(options.status === 401 ? { 'WWW-Authenticate': challenge } : {}),
    }
  }
}

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

/** The codes of A2A 1.0 that the gateway raises or reads, in addition to those of JSON-RPC. */
export const A2A_CODES = {
  TASK_NOT_FOUND: -32001,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32006,
  VERSION_NOT_SUPPORTED: -32009,
} as const

/**
 * The reasons of A2A 1.0, by JSON-RPC code. The specification defines most; the others are those of the official SDKs.
 */
export const A2A_REASONS: ReadonlyMap<number, string> = new Map([
  [-32700, 'PARSE_ERROR'],
  [-32600, 'INVALID_REQUEST'],
  [-32601, 'METHOD_NOT_FOUND'],
  [-32602, 'INVALID_PARAMS'],
  [-32603, 'INTERNAL_ERROR'],
  [A2A_CODES.TASK_NOT_FOUND, 'TASK_NOT_FOUND'],
  [-32002, 'TASK_NOT_CANCELABLE'],
  [A2A_CODES.PUSH_NOTIFICATION_NOT_SUPPORTED, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  [A2A_CODES.UNSUPPORTED_OPERATION, 'UNSUPPORTED_OPERATION'],
  [A2A_CODES.CONTENT_TYPE_NOT_SUPPORTED, 'CONTENT_TYPE_NOT_SUPPORTED'],
  [A2A_CODES.INVALID_AGENT_RESPONSE, 'INVALID_AGENT_RESPONSE'],
  [-32007, 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'],
  [-32008, 'EXTENSION_SUPPORT_REQUIRED'],
  [A2A_CODES.VERSION_NOT_SUPPORTED, 'VERSION_NOT_SUPPORTED'],
])

/** All other reasons are the gateway's own. */
const OF_A2A: ReadonlySet<string> = new Set(A2A_REASONS.values())
const TYPES = 'type.googleapis.com/google.rpc.'

/** The type of the detail that names the reason. */
export const ERROR_INFO = `${TYPES}ErrorInfo`

/** Optional parts of {@link errorDetails}. */
export interface ErrorDetails {
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Time after which the client may repeat the request, in seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** Returns the details that name the setting of a limit, if there is one. */
export function limitDetails(setting: string | undefined): ErrorDetails {
  return { metadata: setting === undefined ? undefined : { limit: setting } }
}

/**
 * Returns `error.data` as A2A 1.0 defines it: an array, whose first element names the reason. Clients look for the
 * reason in that array only.
 */
export function errorDetails(reason: string, { metadata, retryAfterSeconds }: ErrorDetails = {}): readonly object[] {
  const info = {
    '@type': ERROR_INFO,
    reason,
    domain: OF_A2A.has(reason) ? 'a2a-protocol.org' : 'signalbox',
    metadata,
  }
  if (retryAfterSeconds === undefined) return [info]
  return [info, { '@type': `${TYPES}RetryInfo`, retryDelay: `${retryAfterSeconds}s` }]
}
