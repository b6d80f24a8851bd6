import type { OutgoingHttpHeaders } from 'node:http'

import { isBrokerError } from '@signalbox/broker-core'
import { CallEnded, HttpExchange } from '@signalbox/http-kit'
import { LONG_TEXT_BYTES, restRefusal, TextParts } from '@signalbox/http-kit/internal'
import type { HttpRequest, HttpResponse, Refusal } from '@signalbox/http-kit'

import { REGISTRY_ERRORS, RegistryError } from '../errors.ts'
import { InboxError } from './agent-inbox.ts'
import type { BodyContent } from './json-body.ts'
import { bodyRefused } from './json-body.ts'
import type { RegistryOutcome } from './route-options.ts'

/** The content of an error answer. */
interface Failure {
  readonly status: number
  readonly code: string
  /** For a human reader. */
  readonly message: string
  readonly details?: readonly object[]
  readonly headers?: OutgoingHttpHeaders
}

/** An answer that a route has already serialized, with additional headers. */
export class JsonAnswer {
  readonly text: string | TextParts
  readonly headers: OutgoingHttpHeaders

  constructor(text: string | TextParts, headers: OutgoingHttpHeaders) {
    this.text = text
    this.headers = headers
  }
}

/** One HTTP request to the registry and its answer. */
export class RegistryExchange extends HttpExchange {
  /** The route's name in metrics. */
  route = 'unknown'
  /** The content of the body, after the head of the request was accepted. */
  body: BodyContent | undefined
  readonly #maxBodyBytes: number
  readonly #onFinished: ((exchange: RegistryExchange, outcome: RegistryOutcome) => void) | undefined

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    maxBodyBytes: number,
    onFinished: ((exchange: RegistryExchange, outcome: RegistryOutcome) => void) | undefined,
  ) {
    super(request, response, moreHeaders)
    this.#maxBodyBytes = maxBodyBytes
    this.#onFinished = onFinished
  }

  succeed(answer: unknown): void {
    const printed = answer instanceof JsonAnswer
    const text = printed ? answer.text : JSON.stringify(answer)
    const headers = printed ? { ...this.#headers(), ...answer.headers } : this.#headers()
    if (typeof text === 'string' && text.length <= LONG_TEXT_BYTES) {
      if (this.#claim('success')) this.send(200, headers, text)
      return
    }
    const long = typeof text === 'string' ? TextParts.of(text) : text
    const refusal = this.chargeLong(long)
    if (refusal !== undefined) this.refuse(refusal)
    else if (this.#claim('success')) this.sendLong(200, headers, long)
  }

  /** Answers with an error, even if the body was not read. */
  fail({ status, code, message, details = [], headers }: Failure, outcome: RegistryOutcome = 'error'): void {
    if (!this.#claim(outcome)) return
    this.sendRefusal(status, { ...this.#headers(), ...headers }, JSON.stringify({ error: code, message, details }))
  }

  override answerThrown(error: unknown): void {
    if (error instanceof RegistryError) {
      const { code, message, details } = error
      // The specification requires 400 for every error of a heartbeat.
      const status = this.route === 'heartbeat' && error.status === 404 ? 400 : error.status
      const headers = code === 'TOO_MANY_REQUESTS' ? { 'Retry-After': '1' } : {}
      this.fail({ status, code, message, details, headers })
    } else if (error instanceof InboxError) {
      const { code, message } = error
      this.fail({ status: REGISTRY_ERRORS[code].status, code, message })
    } else if (error instanceof CallEnded) {
      if (error.reason === 'disconnected') this.abandon()
      else this.answerThrown(new RegistryError('SHUTTING_DOWN', error.message))
    } else if (isBrokerError(error, 'FORBIDDEN')) {
      this.fail({ status: 403, code: error.code, message: error.message })
    } else if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) {
      this.fail({ status: 503, code: error.code, message: error.message })
    } else throw error
  }

  override refuse(refusal: Refusal): void {
    if (this.body !== undefined) {
      this.answerThrown(bodyRefused(refusal, this.body, this.request, this.#maxBodyBytes))
      return
    }
    const { code, details, headers } = restRefusal(refusal)
    const { message, outcome, status } = refusal
    this.fail({ status, code, message, details: details.limit === undefined ? [] : [details], headers }, outcome)
  }

  override crash(): void {
    this.fail({ status: 500, code: 'INTERNAL', message: 'internal error' })
  }

  override refuseMethod(allowed: readonly string[]): void {
    const methods = allowed.join(', ')
    const { status } = REGISTRY_ERRORS.METHOD_NOT_ALLOWED
    const message = `method not allowed: this path takes ${methods}`
    this.fail({ status, code: 'METHOD_NOT_ALLOWED', message, headers: { Allow: methods } })
  }

  protected override ended(outcome: RegistryOutcome): void {
    this.#onFinished?.(this, this.abandoned ? 'disconnected' : outcome)
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
