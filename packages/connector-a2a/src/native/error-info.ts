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
  readonly metadata?: Readonly<Record<string, string>>
  /** Time after which the client may repeat the request, in seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** Returns the details that name the setting of a limit, if there is one. */
export function limitDetails(setting: string | undefined): ErrorDetails {
  return setting === undefined ? {} : { metadata: { limit: setting } }
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
    ...(metadata === undefined ? {} : { metadata }),
  }
  if (retryAfterSeconds === undefined) return [info]
  return [info, { '@type': `${TYPES}RetryInfo`, retryDelay: `${retryAfterSeconds}s` }]
}
