import { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import type { Span, SpanAttributes, SpanStart, TraceContext, Tracing } from '@signalbox/broker-core'
import { spanTime } from '@signalbox/broker-core/internal'

import type { Refusal, RefusedOutcome } from '../admission/refusal.ts'
import type { RequestHold } from '../admission/request-hold.ts'
import { addressOf } from '../admission/trusted-proxies.ts'
import { refuseBody } from './body.ts'
import { fairTurns } from './fair-turns.ts'
import type { Steps } from './fair-turns.ts'
import type { HttpConnection, HttpRequest, HttpResponse } from './http-message.ts'
import type { Settlement, Settlements, UndeliveredAnswer } from './settlements.ts'
import { countInTurns, writeInTurns } from './text-parts.ts'
import type { LongAnswer, TextParts } from './text-parts.ts'

/** Leased messages in an answer, which are settled after it. */
export interface Unsettled {
  readonly settlements: Settlements
  readonly settlement: Settlement
}

/** Time without reading after which a reader's connection is closed, in ms. */
export const STALLED_MS = 30_000

const HOLD = Symbol('request hold')

/** The hold is stored on the response, so that one listener serves all requests. */
interface HeldResponse extends HttpResponse {
  [HOLD]?: RequestHold
}

const SPAN = Symbol('span')

/** The span is stored on the request, for the log line of the request. */
interface TracedRequest extends HttpRequest {
  [SPAN]?: Span
}

/** Returns the span of a request; undefined if it is not recorded. */
export function spanOf(request: TracedRequest): Span | undefined {
  return request[SPAN]
}

/** The methods that the semantic conventions name. A client may send any other text. */
const HTTP_METHODS: ReadonlySet<string | undefined> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
])

function httpMethodOf({ method = '' }: HttpRequest): string {
  return HTTP_METHODS.has(method) ? method : '_OTHER'
}

/** The start of the span of a request. */
export interface RequestSpan extends Pick<SpanStart, 'name' | 'links'> {
  /** The context that the request names as its parent. @default the one in its headers */
  readonly parent?: TraceContext | undefined
}

function closed(this: HeldResponse): void {
  this[HOLD]?.release()
}

/** One HTTP request and its answer. Each surface implements its protocol. */
export abstract class HttpExchange {
  readonly request: HttpRequest
  readonly response: HttpResponse
  readonly startedAt = performance.now()
  /** The tracing of the surface; undefined if nothing is traced. */
  tracing: Tracing | undefined
  /** `true` if the caller has credentials, or came through a trusted proxy: its decision to record a trace counts. */
  isTrusted = false
  /** The path of the route, with a name in braces for a part that varies; undefined for an unknown path. */
  template: string | undefined
  #span: Span | undefined
  #isDecided = false
  protected moreHeaders: OutgoingHttpHeaders | undefined
  #hold: RequestHold | undefined
  #stalledMs = STALLED_MS
  #answered = false
  /** The writes that the reader did not read at once. The first one starts the watch. */
  #writes = 0
  #isWatched = false

  /** @param moreHeaders Headers that are added to the answer, such as the CORS headers of a host */
  constructor(request: HttpRequest, response: HttpResponse, moreHeaders: OutgoingHttpHeaders | undefined) {
    this.request = request
    this.response = response
    this.moreHeaders = moreHeaders
  }

  /** Answers a request that is not admitted, or whose body is refused. */
  abstract refuse(refusal: Refusal): void

  /** Answers with the surface's internal error. The cause is in the log. */
  abstract crash(cause: unknown): void

  /** Answers an error that a step of the request threw. @throws an error that the protocol does not know: a bug */
  answerThrown(error: unknown): void {
    throw error
  }

  /** Answers 404 for an unknown path. */
  notFound(): void {
    if (!this.begin()) return
    const headers = { ...this.moreHeaders, 'Content-Type': 'text/plain; charset=utf-8' }
    this.sendRefusal(404, headers, '404 page not found\n')
    this.ended('error')
  }

  /** Answers 405 for a path that has these methods only. */
  refuseMethod(allowed: readonly string[]): void {
    if (!this.begin()) return
    this.sendRefusal(405, { ...this.moreHeaders, Allow: allowed.join(', ') }, '')
    this.ended('error')
  }

  /** Reports the outcome of the request, once. */
  protected ended(_outcome: RefusedOutcome): void {}

  /** `true` if the client disconnected. */
  get abandoned(): boolean {
    return this.response.destroyed
  }

  /** `true` if an answer was started or given. */
  get answered(): boolean {
    return this.#answered
  }

  /** Seconds since the request's head arrived. */
  get seconds(): number {
    return (performance.now() - this.startedAt) / 1000
  }

  /** The resources that the request holds of its caller's limits; `undefined` until it is admitted. */
  get hold(): RequestHold | undefined {
    return this.#hold
  }

  /**
   * Releases the resources of the request when its response is closed.
   * @param stalledMs Time without reading after which the reader's connection is closed, in ms
   */
  admit(hold: RequestHold, stalledMs = STALLED_MS): void {
    this.#hold = hold
    this.#stalledMs = stalledMs
    const response: HeldResponse = this.response
    response[HOLD] = hold
    if (response.closed) hold.release()
    else response.on('close', closed)
  }

  /**
   * Keeps the resources of the request after its response is closed, for a connection that was upgraded.
   * @returns a function that releases them; call it once
   */
  outliveResponse(): () => void {
    this.response.off('close', closed)
    return () => this.#hold?.release()
  }

  /** Claims the answer. Returns `false` if the request is answered already. */
  protected begin(): boolean {
    if (this.#answered) return false
    this.#answered = true
    // A request that was refused before it was understood has a span too.
    if (this.tracing !== undefined) void this.span
    return true
  }

  /**
   * The span of the request, until its response is closed; undefined if it is not recorded. The first use decides, so
   * that it must come after the parts that {@link describe} reads are known.
   */
  get span(): Span | undefined {
    if (this.#isDecided || this.tracing === undefined) return this.#span
    this.#isDecided = true
    const { tracing, response } = this
    const { name, parent = tracing.read(this.request.headers), links } = this.describe(tracing)
    const span = tracing.begin(
      { name, kind: 'server', attributes: {}, links, startedAt: spanTime(this.startedAt) },
      parent && { context: parent, isTrusted: this.isTrusted },
    )
    if (span === undefined) return undefined
    // After the decision: most requests may be not recorded.
    span.set(this.attributes())
    this.#span = span
    const request: TracedRequest = this.request
    request[SPAN] = span
    const end = (): void => {
      span.set(this.outcome())
      span.end()
    }
    if (response.closed) end()
    else response.once('close', end)
    return span
  }

  /** Returns the name and the relations of the span of the request. */
  protected describe(_tracing: Tracing): RequestSpan {
    const method = httpMethodOf(this.request)
    return { name: this.template === undefined ? method : `${method} ${this.template}` }
  }

  /** Returns the attributes of the request: those for HTTP as the protocol of the call. */
  protected attributes(): SpanAttributes {
    const { request, template } = this
    const { url = '', socket } = request
    const mark = url.indexOf('?')
    return {
      'http.request.method': httpMethodOf(request),
      'http.route': template,
      // An unknown path may contain anything.
      'url.path': template === undefined ? undefined : mark === -1 ? url : url.slice(0, mark),
      'url.scheme': socket.encrypted === true ? 'https' : 'http',
      'network.protocol.name': 'http',
      'client.address': addressOf(request),
    }
  }

  /** Returns the attributes of the answer, when the response is closed. */
  protected outcome(): SpanAttributes {
    const { statusCode } = this.response
    if (statusCode >= 500) this.#span?.fail(String(statusCode))
    return { 'http.response.status_code': statusCode }
  }

  /** Writes an answer after {@link begin}, and bounds the time that a reader may leave it unread. */
  protected send(status: number, headers: OutgoingHttpHeaders, text: string, unsettled?: Unsettled): void {
    headers['Content-Length'] = Buffer.byteLength(text)
    headers['X-Content-Type-Options'] = 'nosniff'
    this.response.writeHead(status, headers)
    this.sendLast(text, unsettled)
  }

  /**
   * Writes a long answer after {@link begin}, in pieces between which other requests run. Call {@link chargeLong} first.
   * The messages in an answer that cannot be completed are rolled back.
   */
  protected sendLong(status: number, headers: OutgoingHttpHeaders, text: TextParts, unsettled?: Unsettled): void {
    this.#inPieces(text, unsettled, async (answer) => {
      headers['Content-Length'] = await countInTurns(text, answer)
      headers['X-Content-Type-Options'] = 'nosniff'
      if (!this.abandoned) this.response.writeHead(status, headers)
    })
  }

  /** Ends an answer whose head is written with a long text, as {@link sendLong} does. */
  protected sendLongLast(text: TextParts, unsettled?: Unsettled): void {
    this.#inPieces(text, unsettled, async () => {})
  }

  /** Counts the bytes of a long answer for the caller until it is written. Returns the refusal if a limit is reached. */
  chargeLong(text: TextParts): Refusal | undefined {
    return this.#hold?.charge(text.heldBytes)
  }

  /** Does dear work for the request in turns with other callers. The request counts until the work is done. */
  inTurns<T>(steps: Steps<T>): Promise<T> {
    return this.#held((account) => fairTurns.steps(account, steps))
  }

  async #held<T>(work: (account: string) => Promise<T>): Promise<T> {
    const hold = this.#hold
    hold?.retain()
    try {
      return await work(hold?.account.key ?? '')
    } finally {
      hold?.release()
    }
  }

  #inPieces(text: TextParts, unsettled: Unsettled | undefined, begin: (answer: LongAnswer) => Promise<void>): void {
    const { response } = this
    const account = this.#hold?.account.key ?? ''
    const answer: LongAnswer = { response, account, onUnread: () => this.#watchReader() }
    const write = async (): Promise<Uint8Array | undefined> => {
      await begin(answer)
      return this.abandoned ? undefined : writeInTurns(text, answer)
    }
    const undelivered = unsettled?.settlements.begin(response, unsettled.settlement)
    write()
      .then((last) => {
        if (last === undefined) undelivered?.abandon()
        else this.#sendLast(last, undelivered)
      })
      .catch(() => {
        // A partly written answer cannot be completed.
        undelivered?.abandon()
        response.destroy()
      })
  }

  /** Ends an answer whose head is written. */
  protected sendLast(text: string | Uint8Array, unsettled?: Unsettled): void {
    const undelivered = unsettled?.settlements.begin(this.response, unsettled.settlement)
    // Without a connection, the messages were rolled back.
    if (undelivered !== undefined || unsettled === undefined) this.#sendLast(text, undelivered)
  }

  #sendLast(text: string | Uint8Array, undelivered: UndeliveredAnswer | undefined): void {
    const { response } = this
    if (undelivered === undefined) response.end(text)
    else undelivered.deliver(text)
    if (response.writableLength > 0) this.#watchReader()
  }

  /** Writes an answer after {@link begin}, to a request whose body may be unread. */
  protected sendRefusal(status: number, headers: OutgoingHttpHeaders, text: string): void {
    refuseBody(this.request, this.response, status, { ...headers, 'X-Content-Type-Options': 'nosniff' }, text)
  }

  /** Counts unread bytes, and closes the connection of a reader that reads no byte within the time-out. */
  #watchReader(): void {
    const { response } = this
    const hold = this.#hold
    let waiting = response.writableLength
    if (hold?.setUnread(waiting) === false) {
      response.destroy()
      return
    }
    this.#writes++
    if (this.#isWatched) return
    this.#isWatched = true
    const { socket } = this.request
    let queued = queuedBytes(socket)
    let writes = this.#writes
    const timer = setInterval(() => {
      const left = response.writableLength
      const stillQueued = queuedBytes(socket)
      if (left > 0 && left >= waiting && stillQueued === queued && writes === this.#writes) response.destroy()
      writes = this.#writes
      waiting = left
      queued = stillQueued
      hold?.setUnread(left)
    }, this.#stalledMs)
    timer.unref()
    response.once('close', () => clearInterval(timer))
  }
}

/**
 * Returns the number of bytes of a socket that the operating system has not accepted yet. Node counts an answer as
 * unwritten until its last byte is accepted, so only this number distinguishes a slow reader from a stalled one.
 * Node's socket time-out uses it too, but with TLS the number of the underlying connection is needed. Returns 0 if
 * the Node version has neither.
 */
function queuedBytes(socket: HttpConnection): number {
  const handle = memberOf(socket, '_handle')
  return sizeOf(handle) + sizeOf(memberOf(handle, '_parent'))
}

function sizeOf(handle: unknown): number {
  const size = memberOf(handle, 'writeQueueSize')
  return typeof size === 'number' ? size : 0
}

function memberOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined
}
