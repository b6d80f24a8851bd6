import { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { refuseBody, SseStream } from '@signalbox/http-kit'
import type { Settlement, Settlements, SseOptions } from '@signalbox/http-kit'

import type { CeError } from './errors.ts'
import type { CeOutcome } from './options.ts'

/** What a route answers with. */
export interface Answer {
  readonly status: number
  /** For a person. */
  readonly message: string
  /** JSON text: it may hold an event's data as it came. */
  readonly data: string
  /** The call was made and came to nothing, such as a subscriber's rejection: `is_error` is true. @default false */
  readonly rejected?: boolean
  /** For messages on lease that travel in the answer (M14). */
  readonly settlement?: Settlement
}

/** The reply envelope as JSON text. `data` is JSON text. */
export function envelopeText(isError: boolean, message: string, data: string): string {
  return `{"is_error":${isError},"message":${JSON.stringify(message)},"data":${data}}`
}

/** One HTTP request and the one answer to it. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** For metrics. */
  route = 'unknown'
  readonly startedAt: number
  readonly #moreHeaders: OutgoingHttpHeaders | undefined
  readonly #onFinished: ((exchange: Exchange, outcome: CeOutcome) => void) | undefined
  #answered = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((exchange: Exchange, outcome: CeOutcome) => void) | undefined,
  ) {
    this.request = request
    this.response = response
    this.#moreHeaders = moreHeaders
    this.#onFinished = onFinished
    this.startedAt = onFinished === undefined ? 0 : performance.now()
  }

  /** The client went away before it had its answer. */
  get abandoned(): boolean {
    return this.response.destroyed
  }

  answer({ status, message, data, rejected = false, settlement }: Answer, settlements: Settlements): void {
    if (this.#answered) return
    this.#answered = true
    const { response } = this
    if (response.destroyed) {
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.#finished('disconnected')
      return
    }
    const text = envelopeText(rejected, message, data)
    response.writeHead(status, { ...this.#headers(), 'Content-Length': Buffer.byteLength(text) })
    if (settlement === undefined) response.end(text)
    else settlements.deliver(response, text, settlement)
    this.#finished(rejected ? 'rejected' : 'success')
  }

  /** Answers with an error, whether or not the body was read. */
  fail(error: CeError, outcome: CeOutcome = 'error', headers?: OutgoingHttpHeaders): void {
    if (this.#answered) return
    this.#answered = true
    const { code, details, message, status } = error
    const text = envelopeText(true, message, JSON.stringify({ code, ...details }))
    refuseBody(this.request, this.response, status, { ...this.#headers(), ...headers }, text)
    this.#finished(outcome)
  }

  /** There is nothing at this path. */
  notFound(): void {
    if (this.#answered) return
    this.#answered = true
    const headers = { ...this.#moreHeaders, 'Content-Type': 'text/plain; charset=utf-8' }
    refuseBody(this.request, this.response, 404, headers, '404 page not found\n')
    this.#finished('error')
  }

  /** Begins an event stream as the answer. */
  openStream(options: SseOptions): SseStream {
    this.#answered = true
    const stream = new SseStream(this.response, {
      ...options,
      ...(this.#moreHeaders === undefined ? {} : { headers: this.#moreHeaders }),
    })
    this.#finished('success')
    return stream
  }

  /** There is nobody to answer any more. */
  abandon(): void {
    if (this.#answered) return
    this.#answered = true
    this.#finished('disconnected')
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.#moreHeaders, 'Content-Type': 'application/json' }
  }

  #finished(outcome: CeOutcome): void {
    this.#onFinished?.(this, outcome)
  }
}
