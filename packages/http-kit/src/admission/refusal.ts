import type { OutgoingHttpHeaders } from 'node:http'

import type { LimitName } from './limits.ts'

/** The reason for which a request was refused before its handler ran. */
export type RefusalReason =
  /** The Origin header names a site that is not trusted. */
  | 'origin'
  /** The Host header names another host, while every caller is anonymous. */
  | 'host'
  /** A page of another site caused the request, while every caller is anonymous. */
  | 'cross_site'
  | 'unauthenticated'
  | 'starting'
  | 'shutting_down'
  /** A limit is reached; {@link Refusal.limit} names it. */
  | 'limit'
  | 'body_too_large'

/** Optional parts of a {@link Refusal}. */
interface RefusalDetails {
  /** The most bytes that the body may have. */
  readonly maxBodyBytes?: number
  readonly limit?: LimitName
  /** The value of `Retry-After`, in seconds. */
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** A refused request. Each surface answers it in its protocol. */
export class Refusal {
  readonly reason: RefusalReason
  /** A text for people: the problem, the allowed values, the remedy. */
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

  /** The HTTP status, for protocols without their own (RFC 9110, RFC 6585). */
  get status(): number {
    return STATUS[this.reason]
  }

  /** The outcome of the request in metrics. */
  get outcome(): RefusedOutcome {
    return OUTCOMES[this.reason]
  }
}

/** The outcomes of refused requests in metrics. */
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

/** The error codes of refusals, on surfaces that answer with an HTTP status and a code. */
export type RestRefusalCode =
  | 'ORIGIN_REFUSED'
  | 'UNAUTHENTICATED'
  | 'SHUTTING_DOWN'
  | 'TOO_MANY_REQUESTS'
  | 'BODY_TOO_LARGE'

const CODES: Readonly<Record<RefusalReason, RestRefusalCode>> = {
  origin: 'ORIGIN_REFUSED',
  host: 'ORIGIN_REFUSED',
  cross_site: 'ORIGIN_REFUSED',
  unauthenticated: 'UNAUTHENTICATED',
  starting: 'SHUTTING_DOWN',
  shutting_down: 'SHUTTING_DOWN',
  limit: 'TOO_MANY_REQUESTS',
  body_too_large: 'BODY_TOO_LARGE',
}

/** A refusal on a surface that answers with an HTTP status and a code. */
export interface RestRefusal {
  readonly code: RestRefusalCode
  /** The limit that was reached: its name, or the most bytes of a body. */
  readonly details: { readonly limit?: LimitName | number }
  /** `WWW-Authenticate` (RFC 6750) and `Retry-After`, where they apply. */
  readonly headers: OutgoingHttpHeaders
}

/** Converts a refusal for a surface that answers with an HTTP status and a code. */
export function restRefusal({ limit: name, maxBodyBytes, reason, retryAfterSeconds }: Refusal): RestRefusal {
  const limit = name ?? maxBodyBytes
  const headers: OutgoingHttpHeaders = {}
  if (reason === 'unauthenticated') headers['WWW-Authenticate'] = 'Bearer realm="signalbox"'
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds)
  return { code: CODES[reason], details: limit === undefined ? {} : { limit }, headers }
}
