import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { HttpExchange } from '@signalbox/http-kit'
import type { Refusal } from '@signalbox/http-kit'

import type { RegistryErrorCode } from '../errors.ts'
import { JsonAnswer } from './json-answer.ts'
import type { RegistryOutcome } from './route-options.ts'

/** What a client is told of a failure (R1). */
export interface Failure {
  readonly status: number
  readonly code: string
  /** For a person. */
  readonly message: string
  readonly details?: readonly object[]
  readonly headers?: OutgoingHttpHeaders
}

const REFUSED: Readonly<
  Record<Refusal['reason'], { readonly code: RegistryErrorCode; readonly outcome: RegistryOutcome }>
> = {
  origin: { code: 'ORIGIN_REFUSED', outcome: 'origin_refused' },
  host: { code: 'ORIGIN_REFUSED', outcome: 'origin_refused' },
  cross_site: { code: 'ORIGIN_REFUSED', outcome: 'origin_refused' },
  unauthenticated: { code: 'UNAUTHENTICATED', outcome: 'unauthenticated' },
  starting: { code: 'SHUTTING_DOWN', outcome: 'error' },
  shutting_down: { code: 'SHUTTING_DOWN', outcome: 'error' },
  limit: { code: 'TOO_MANY_REQUESTS', outcome: 'limited' },
  body_too_large: { code: 'BODY_TOO_LARGE', outcome: 'error' },
}

/** One HTTP request to the registry and the one answer to it. */
export class RegistryExchange extends HttpExchange {
  /** For metrics. */
  route = 'unknown'
  readonly #onFinished: (exchange: RegistryExchange, outcome: RegistryOutcome) => void

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: (exchange: RegistryExchange, outcome: RegistryOutcome) => void,
  ) {
    super(request, response, moreHeaders)
    this.#onFinished = onFinished
  }

  succeed(answer: unknown): void {
    const printed = answer instanceof JsonAnswer
    const text = printed ? answer.text : JSON.stringify(answer)
    const headers = printed ? { ...this.#headers(), ...answer.headers } : this.#headers()
    if (this.#claim('success')) this.send(200, headers, text)
  }

  /** Answers with an error, whether or not the body was read. */
  fail({ status, code, message, details = [], headers }: Failure, outcome: RegistryOutcome = 'error'): void {
    if (!this.#claim(outcome)) return
    this.sendRefusal(status, { ...this.#headers(), ...headers }, JSON.stringify({ error: code, message, details }))
  }

  override refuse({ limit, message, reason, retryAfterSeconds, status }: Refusal): void {
    const { code, outcome } = REFUSED[reason]
    const headers: OutgoingHttpHeaders = {}
    if (reason === 'unauthenticated') headers['WWW-Authenticate'] = 'Bearer realm="signalbox"'
    if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(retryAfterSeconds)
    this.fail({ status, code, message, details: limit === undefined ? [] : [{ limit }], headers }, outcome)
  }

  override crash(): void {
    const code: RegistryErrorCode = 'INTERNAL'
    this.fail({ status: 500, code, message: 'internal error' })
  }

  /** There is nothing at this path. */
  notFound(): void {
    if (!this.#claim('error')) return
    const headers = { ...this.moreHeaders, 'Content-Type': 'text/plain; charset=utf-8' }
    this.sendRefusal(404, headers, '404 page not found\n')
  }

  /** There is nobody to answer any more. */
  abandon(): void {
    this.#claim('disconnected')
  }

  /** False when there is nothing to write: the answer was given, or the client is gone. */
  #claim(outcome: RegistryOutcome): boolean {
    if (!this.begin()) return false
    this.#onFinished(this, this.abandoned ? 'disconnected' : outcome)
    return !this.abandoned
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.moreHeaders, 'Content-Type': 'application/json' }
  }
}
