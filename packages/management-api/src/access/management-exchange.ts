import { HttpExchange } from '@signalbox/http-kit'
import type { Refusal } from '@signalbox/http-kit'

import { ManagementError } from '../errors.ts'
import type { ManagementErrorCode } from '../errors.ts'
import type { Operator } from './operator.ts'

const CODES: Readonly<Record<Refusal['reason'], ManagementErrorCode>> = {
  origin: 'ORIGIN_REFUSED',
  host: 'ORIGIN_REFUSED',
  cross_site: 'ORIGIN_REFUSED',
  unauthenticated: 'UNAUTHENTICATED',
  starting: 'NOT_READY',
  shutting_down: 'NOT_READY',
  limit: 'TOO_MANY_REQUESTS',
  body_too_large: 'BODY_TOO_LARGE',
}

/** Returns the error that says a refusal to the operator. */
export function managementRefusal({ cause, limit: name, maxBodyBytes, message, reason, retryAfterSeconds }: Refusal) {
  const limit = name ?? maxBodyBytes
  const details = {
    ...(limit === undefined ? {} : { limit }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  }
  return new ManagementError(CODES[reason], message, details, { cause })
}

/** A request to the management listener. Fastify answers it: what is refused goes to its error handler. */
export class ManagementExchange extends HttpExchange {
  /** Who makes it; undefined until it is admitted. */
  operator: Operator | undefined
  /** Takes what ends the request's way early. */
  onRefused: (error: ManagementError) => void = () => {}

  override refuse(refusal: Refusal): void {
    this.onRefused(managementRefusal(refusal))
  }

  override crash(cause: unknown): void {
    this.onRefused(new ManagementError('INTERNAL', 'internal error', {}, { cause }))
  }
}
