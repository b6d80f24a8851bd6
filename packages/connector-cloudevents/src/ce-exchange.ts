import type { OutgoingHttpHeaders } from 'node:http'

import type { SpanAttributes } from '@signalbox/broker-core'
import { CallEnded, HttpExchange, SseStream } from '@signalbox/http-kit'
import { restRefusal, TextParts } from '@signalbox/http-kit/internal'
import type { Refusal, Settlement, Settlements, SseOptions } from '@signalbox/http-kit'

import { CeError, toCeError } from './errors.ts'
import type { IncomingEvent } from './event/attributes.ts'
import type { CeOutcome } from './options.ts'
import { PUSH_PATH } from './push/push-subscriptions.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The answer of a route. */
export interface CeAnswer {
  readonly status: number
  /** A text for people. */
  readonly message: string
  /** JSON text. It may contain the unchanged data of an event. A long text is written in pieces. */
  readonly data: string | TextParts
  /**
   * `true` if the call was rejected, for example by a subscriber. The answer then has `is_error: true`.
   * @default false
   */
  readonly rejected?: boolean
  /**
   * `true` if an earlier request with the same idempotency key got this answer. The answer then has the header
   * `Idempotency-Replayed: true`.
   * @default false
   */
  readonly replayed?: boolean
  /** The settlement of leased messages in the answer. */
  readonly settlement?: Settlement
}

/** Returns the reply envelope as JSON text. `data` is JSON text. */
function envelopeText(isError: boolean, message: string, data: string): string {
  return `{"is_error":${isError},"message":${JSON.stringify(message)},"data":${data}}`
}

/** One HTTP request below `/ce` and its answer. */
export class CeExchange extends HttpExchange {
  /** The name of the route, for metrics. */
  route = 'unknown'
  /** The query string without its question mark. */
  query = ''
  /** The event of the request, or the first one of a batch. */
  first: Pick<IncomingEvent, 'message'> | undefined
  readonly #onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined

  constructor(
    request: HttpRequest,
    response: HttpResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined,
  ) {
    super(request, response, moreHeaders)
    this.#onFinished = onFinished
  }

  protected override attributes(): SpanAttributes {
    const { ce_id: id, ce_source: source, ce_type: type } = this.first?.message.tags ?? {}
    return {
      ...super.attributes(),
      'cloudevents.event_id': id,
      'cloudevents.event_source': source,
      'cloudevents.event_type': type,
    }
  }

  answer(answer: CeAnswer, settlements: Settlements): void {
    const { status, message, data, rejected = false, replayed = false, settlement } = answer
    const refusal = typeof data === 'string' ? undefined : this.chargeLong(data)
    if (refusal !== undefined) {
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.refuse(refusal)
      return
    }
    if (!this.begin()) return
    if (this.abandoned) {
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.ended('disconnected')
      return
    }
    const unsettled = settlement === undefined ? undefined : { settlements, settlement }
    const headers = this.#headers()
    if (replayed) headers['Idempotency-Replayed'] = 'true'
    if (typeof data === 'string') this.send(status, headers, envelopeText(rejected, message, data), unsettled)
    else {
      const [head = '', tail = ''] = envelopeText(rejected, message, '\0').split('\0')
      this.sendLong(status, headers, new TextParts().add(head).add(data).add(tail), unsettled)
    }
    this.ended(rejected ? 'rejected' : 'success')
  }

  /** Answers with a JSON text without the envelope. */
  answerPlain(status: number, text: string): void {
    if (!this.begin()) return
    if (this.abandoned) {
      this.ended('disconnected')
      return
    }
    this.send(status, this.#headers(), text)
    this.ended('success')
  }

  /** Answers with an error. The body may be unread. */
  fail(error: CeError, outcome: CeOutcome = 'error', headers?: OutgoingHttpHeaders): void {
    if (!this.begin()) return
    const { code, details, message, status } = error
    const text = envelopeText(true, message, JSON.stringify({ code, ...details }))
    this.sendRefusal(status, { ...this.#headers(), ...headers }, text)
    this.ended(outcome)
  }

  override refuse(refusal: Refusal): void {
    const { code, details, headers } = restRefusal(refusal)
    this.fail(new CeError(code, refusal.message, details), refusal.outcome, headers)
  }

  override crash(cause: unknown): void {
    this.fail(new CeError('INTERNAL', 'internal error', {}, { cause }))
  }

  override answerThrown(error: unknown): void {
    if (error instanceof CallEnded) {
      if (error.reason === 'disconnected') this.#abandon()
      else this.fail(new CeError('SHUTTING_DOWN', error.message))
      return
    }
    const answer = toCeError(error)
    if (answer.code === 'INTERNAL') throw error
    this.fail(answer)
  }

  override refuseMethod(allowed: readonly string[]): void {
    const accepted = this.route === PUSH_PATH ? `${allowed.join(' and ')} here` : `${allowed.join(' and ')} only`
    const message = `method not allowed: ${this.route} accepts ${accepted}`
    this.fail(new CeError('METHOD_NOT_ALLOWED', message), 'error', { Allow: allowed.join(', ') })
  }

  protected override ended(outcome: CeOutcome): void {
    this.#onFinished?.(this, outcome)
  }

  /** Starts an event stream as the answer. */
  openStream(options: SseOptions): SseStream {
    this.begin()
    const { hold, moreHeaders: headers } = this
    const stream = new SseStream(this.response, { ...options, hold, headers })
    this.ended('success')
    return stream
  }

  /** Marks the request as finished without an answer: its client is gone. */
  #abandon(): void {
    if (this.begin()) this.ended('disconnected')
  }

  #headers(): OutgoingHttpHeaders {
    return { ...this.moreHeaders, 'Content-Type': 'application/json' }
  }
}
