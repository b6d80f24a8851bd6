import type { OutgoingHttpHeaders } from 'node:http'

import type { LimitName, Refusal, RefusalReason } from './refusal.ts'

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
