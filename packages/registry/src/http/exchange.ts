import { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { refuseBody } from '@signalbox/http-kit'

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

/** One HTTP request and the one answer to it. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** For metrics. */
  route = 'unknown'
  readonly startedAt = performance.now()
  readonly #moreHeaders: OutgoingHttpHeaders | undefined
  readonly #onFinished: (exchange: Exchange, outcome: RegistryOutcome) => void
  #answered = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: (exchange: Exchange, outcome: RegistryOutcome) => void,
  ) {
    this.request = request
    this.response = response
    this.#moreHeaders = moreHeaders
    this.#onFinished = onFinished
  }

  succeed(answer: unknown): void {
    if (!this.#begin('success')) return
    const text = JSON.stringify(answer)
    this.response.writeHead(200, { ...this.#headers(), 'Content-Length': Buffer.byteLength(text) })
    this.response.end(text)
  }

  /** Answers with an error, whether or not the body was read. */
  fail({ status, code, message, details = [], headers }: Failure, outcome: RegistryOutcome = 'error'): void {
    if (!this.#begin(outcome)) return
    const text = JSON.stringify({ error: code, message, details })
    refuseBody(this.request, this.response, status, { ...this.#headers(), ...headers }, text)
  }

  /** There is nothing at this path. */
  notFound(): void {
    if (!this.#begin('error')) return
    const headers = { ...this.#moreHeaders, 'Content-Type': 'text/plain; charset=utf-8' }
    refuseBody(this.request, this.response, 404, headers, '404 page not found\n')
  }

  /** There is nobody to answer any more. */
  abandon(): void {
    this.#begin('disconnected')
  }

  /** False when there is nothing to write: the answer was given, or the client is gone. */
  #begin(outcome: RegistryOutcome): boolean {
    if (this.#answered) return false
    this.#answered = true
    const gone = this.response.destroyed
    this.#onFinished(this, gone ? 'disconnected' : outcome)
    return !gone
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.#moreHeaders, 'Content-Type': 'application/json' }
  }
}
