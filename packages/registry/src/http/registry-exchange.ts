import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { HttpExchange, restRefusal } from '@signalbox/http-kit'
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

  override refuse(refusal: Refusal): void {
    const { code, details, headers } = restRefusal(refusal)
    const { message, outcome, status } = refusal
    this.fail({ status, code, message, details: details.limit === undefined ? [] : [details], headers }, outcome)
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
