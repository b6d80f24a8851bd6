import type { OutgoingHttpHeaders } from 'node:http'

import { HttpExchange, restRefusal } from '@signalbox/http-kit'
import type { Refusal } from '@signalbox/http-kit'

import type { RegistryErrorCode } from '../errors.ts'
import { JsonAnswer } from './json-answer.ts'
import type { RegistryOutcome } from './route-options.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The content of an error answer. */
export interface Failure {
  readonly status: number
  readonly code: string
  /** For a human reader. */
  readonly message: string
  readonly details?: readonly object[]
  readonly headers?: OutgoingHttpHeaders
}

/** One HTTP request to the registry and its answer. */
export class RegistryExchange extends HttpExchange {
  /** The route's name in metrics. */
  route = 'unknown'
  readonly #onFinished: (exchange: RegistryExchange, outcome: RegistryOutcome) => void

  constructor(
    request: HttpRequest,
    response: HttpResponse,
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

  /** Answers with an error, even if the body was not read. */
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

  protected override ended(outcome: RegistryOutcome): void {
    this.#onFinished(this, this.abandoned ? 'disconnected' : outcome)
  }

  /** Ends the exchange after the client disconnected. */
  abandon(): void {
    this.#claim('disconnected')
  }

  /** Returns false when no answer can be written: one was written already, or the client disconnected. */
  #claim(outcome: RegistryOutcome): boolean {
    if (!this.begin()) return false
    this.ended(outcome)
    return !this.abandoned
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.moreHeaders, 'Content-Type': 'application/json' }
  }
}
