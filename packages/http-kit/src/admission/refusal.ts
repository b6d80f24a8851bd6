/** Why the front door turned a request away, before a handler saw it. */
export type RefusalReason =
  /** The Origin header names a site that is not trusted. */
  | 'origin'
  /** The Host header names a host that is not this server's, while anybody may call. */
  | 'host'
  /** A page of another site made the browser ask, while anybody may call. */
  | 'cross_site'
  | 'unauthenticated'
  | 'starting'
  | 'shutting_down'
  /** A limit is reached: {@link Refusal.limit} says which. */
  | 'limit'
  | 'body_too_large'

/** The limits that a caller can meet, as label values. */
export const LIMIT_NAMES = [
  'caller_rate',
  'caller_requests',
  'caller_body_bytes',
  'caller_streams',
  'caller_unread_bytes',
  'process_requests',
  'process_body_bytes',
  'process_streams',
  'process_unread_bytes',
  'memory',
] as const

export type LimitName = (typeof LIMIT_NAMES)[number]

export interface RefusalDetails {
  /** The most bytes that the body may have. */
  readonly maxBodyBytes?: number
  readonly limit?: LimitName
  /** For `Retry-After`. */
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** A request that is not admitted. Each surface says it in its protocol's words. */
export class Refusal {
  readonly reason: RefusalReason
  /** For a person: what is wrong, what is allowed, what to do. */
  readonly message: string
  readonly limit: LimitName | undefined
  readonly maxBodyBytes: number | undefined
  readonly retryAfterSeconds: number | undefined
  readonly cause: unknown

  constructor(reason: RefusalReason, message: string, details: RefusalDetails = {}) {
    const { limit, maxBodyBytes, retryAfterSeconds, cause } = details
    this.reason = reason
    this.message = message
    this.limit = limit
    this.maxBodyBytes = maxBodyBytes
    this.retryAfterSeconds = retryAfterSeconds
    this.cause = cause
  }

  /** The HTTP status, for protocols without one of their own (RFC 9110, RFC 6585). */
  get status(): number {
    return STATUS[this.reason]
  }

  /** How the request counts in metrics. */
  get outcome(): RefusedOutcome {
    return OUTCOMES[this.reason]
  }
}

/** How a refused request counts in metrics. */
export type RefusedOutcome = 'error' | 'limited' | 'origin_refused' | 'unauthenticated'

const OUTCOMES: Readonly<Record<RefusalReason, RefusedOutcome>> = {
  origin: 'origin_refused',
  host: 'origin_refused',
  cross_site: 'origin_refused',
  unauthenticated: 'unauthenticated',
  starting: 'error',
  shutting_down: 'error',
  limit: 'limited',
  body_too_large: 'error',
}

const STATUS: Readonly<Record<RefusalReason, number>> = {
  origin: 403,
  host: 403,
  cross_site: 403,
  unauthenticated: 401,
  starting: 503,
  shutting_down: 503,
  limit: 429,
  body_too_large: 413,
}
