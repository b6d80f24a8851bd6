import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { HttpExchange, restRefusal, SseStream } from '@signalbox/http-kit'
import type { Refusal, Settlement, Settlements, SseOptions } from '@signalbox/http-kit'

import { CeError } from './errors.ts'
import type { CeOutcome } from './options.ts'

/** What a route answers with. */
export interface CeAnswer {
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
function envelopeText(isError: boolean, message: string, data: string): string {
  return `{"is_error":${isError},"message":${JSON.stringify(message)},"data":${data}}`
}

/** One HTTP request below `/ce` and the one answer to it. */
export class CeExchange extends HttpExchange {
  /** For metrics. */
  route = 'unknown'
  readonly #onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined,
  ) {
    super(request, response, moreHeaders)
    this.#onFinished = onFinished
  }

  answer({ status, message, data, rejected = false, settlement }: CeAnswer, settlements: Settlements): void {
    if (!this.begin()) return
    if (this.abandoned) {
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.#onFinished?.(this, 'disconnected')
      return
    }
    const text = envelopeText(rejected, message, data)
    this.send(status, this.#headers(), text, settlement === undefined ? undefined : { settlements, settlement })
    this.#onFinished?.(this, rejected ? 'rejected' : 'success')
  }

  /** Answers with an error, whether or not the body was read. */
  fail(error: CeError, outcome: CeOutcome = 'error', headers?: OutgoingHttpHeaders): void {
    if (!this.begin()) return
    const { code, details, message, status } = error
    const text = envelopeText(true, message, JSON.stringify({ code, ...details }))
    this.sendRefusal(status, { ...this.#headers(), ...headers }, text)
    this.#onFinished?.(this, outcome)
  }

  override refuse(refusal: Refusal): void {
    const { code, details, headers } = restRefusal(refusal)
    this.fail(new CeError(code, refusal.message, details), refusal.outcome, headers)
  }

  override crash(cause: unknown): void {
    this.fail(new CeError('INTERNAL', 'internal error', {}, { cause }))
  }

  /** There is nothing at this path. */
  notFound(): void {
    if (!this.begin()) return
    const headers = { ...this.moreHeaders, 'Content-Type': 'text/plain; charset=utf-8' }
    this.sendRefusal(404, headers, '404 page not found\n')
    this.#onFinished?.(this, 'error')
  }

  /** Begins an event stream as the answer. */
  openStream(options: SseOptions): SseStream {
    this.begin()
    const stream = new SseStream(this.response, {
      ...options,
      ...(this.hold === undefined ? {} : { hold: this.hold }),
      ...(this.moreHeaders === undefined ? {} : { headers: this.moreHeaders }),
    })
    this.#onFinished?.(this, 'success')
    return stream
  }

  /** There is nobody to answer any more. */
  abandon(): void {
    if (this.begin()) this.#onFinished?.(this, 'disconnected')
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.moreHeaders, 'Content-Type': 'application/json' }
  }
}
