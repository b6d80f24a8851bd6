import type { OutgoingHttpHeaders } from 'node:http'

import { HttpExchange } from '@signalbox/http-kit'
import type { Refusal, TextParts, Unsettled } from '@signalbox/http-kit'

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

/** Returns the error that reports a refusal to the operator. */
export function managementRefusal({ cause, limit: name, maxBodyBytes, message, reason, retryAfterSeconds }: Refusal) {
  const limit = name ?? maxBodyBytes
  const details = {
    ...(limit === undefined ? {} : { limit }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  }
  return new ManagementError(CODES[reason], message, details, { cause })
}

/** A request to the management listener. Fastify answers it: refusals go to Fastify's error handler. */
export class ManagementExchange extends HttpExchange {
  /** The caller; undefined until the request is admitted. */
  operator: Operator | undefined
  /** Called with the error that ends the request early. */
  onRefused: (error: ManagementError) => void = () => {}

  override refuse(refusal: Refusal): void {
    this.onRefused(managementRefusal(refusal))
  }

  /** Answers with a text in pieces, after Fastify handed over the response. */
  answerParts(headers: OutgoingHttpHeaders, text: TextParts, unsettled: Unsettled | undefined): void {
    this.begin()
    this.sendLong(200, headers, text, unsettled)
  }

  override crash(cause: unknown): void {
    this.onRefused(new ManagementError('INTERNAL', 'internal error', {}, { cause }))
  }
}
