/** The codes of A2A 1.0 that the gateway raises in addition to those of JSON-RPC. */
export const A2A_CODES = {
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32006,
  VERSION_NOT_SUPPORTED: -32009,
} as const

/** The reasons that A2A 1.0 defines. All other reasons are the gateway's own. */
const OF_A2A: ReadonlySet<string> = new Set<keyof typeof A2A_CODES>([
  'UNSUPPORTED_OPERATION',
  'CONTENT_TYPE_NOT_SUPPORTED',
  'INVALID_AGENT_RESPONSE',
  'VERSION_NOT_SUPPORTED',
])

const TYPES = 'type.googleapis.com/google.rpc.'

/** Optional parts of {@link errorDetails}. */
export interface ErrorDetails {
  readonly metadata?: Readonly<Record<string, string>>
  /** Time after which the client may repeat the request, in seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/**
 * Returns `error.data` as A2A 1.0 defines it: an array, whose first element names the reason. Clients look for the
 * reason in that array only.
 */
export function errorDetails(reason: string, { metadata, retryAfterSeconds }: ErrorDetails = {}): readonly object[] {
  const info = {
    '@type': `${TYPES}ErrorInfo`,
    reason,
    domain: OF_A2A.has(reason) ? 'a2a-protocol.org' : 'signalbox',
    ...(metadata === undefined ? {} : { metadata }),
  }
  if (retryAfterSeconds === undefined) return [info]
  return [info, { '@type': `${TYPES}RetryInfo`, retryDelay: `${retryAfterSeconds}s` }]
}
