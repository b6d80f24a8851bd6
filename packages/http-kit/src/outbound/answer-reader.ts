import { Buffer } from 'node:buffer'

import type { Dispatcher } from 'undici'

/** The answer of a server. */
export interface Answer {
  readonly status: number
  /** The headers in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The body, or its start. */
  readonly text: string
}

export interface AnswerLimits {
  /** The time from the start of the request to the head of the answer, in ms. */
  readonly headMs: number
  /** The additional time for the rest of the answer, in ms. @default 0: `headMs` applies to the whole answer */
  readonly restMs?: number
  /** The most bytes of a body that are read. */
  readonly maxBytes: number
  /**
   * The bytes of a body that are kept. Without a number, the answer must be complete: one that is longer than `maxBytes`,
   * or encoded, is a failure. With a number, the rest of a longer body is dropped, and so is an encoded body: it is not
   * text.
   */
  readonly keptBytes?: number
}

/** A request in flight. */
export interface OpenRequest {
  abort(reason: Error): void
}

/**
 * Requests in flight that are aborted together. A set costs less than a listener of an `AbortSignal` for each request.
 */
export class OpenRequests {
  readonly #requests = new Set<OpenRequest>()
  #reason: Error | undefined

  /** `true` if no request may start any more. */
  get aborted(): boolean {
    return this.#reason !== undefined
  }

  throwIfAborted(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** Adds a request. Aborts it if the others were aborted before. */
  add(request: OpenRequest): void {
    if (this.#reason === undefined) this.#requests.add(request)
    else request.abort(this.#reason)
  }

  delete(request: OpenRequest): void {
    this.#requests.delete(request)
  }

  /** Aborts all requests. Idempotent. */
  abort(reason: Error): void {
    this.#reason ??= reason
    for (const request of this.#requests) request.abort(this.#reason)
  }
}

/**
 * Reads the answer to one request, within limits of time and size. It is the handler of undici's `dispatch`: the stream
 * that `request` makes of an answer costs as much as the rest of the request.
 */
export class AnswerReader implements Dispatcher.DispatchHandler, OpenRequest {
  /** Resolves with the answer. Rejects without one in time, and with the reason of {@link abort}. */
  readonly answer: Promise<Answer>
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: Error) => void
  readonly #limits: AnswerLimits
  readonly #open: OpenRequests | undefined
  #timer: NodeJS.Timeout
  /** The request in progress; `undefined` until it has a connection. */
  #request: Dispatcher.DispatchController | undefined
  #failure: Error | undefined
  #status = 0
  #headers: Answer['headers'] = {}
  #room: number
  readonly #kept: Buffer[] = []
  #read = 0

  /** @param open The requests that are aborted together with this one */
  constructor(limits: AnswerLimits, open?: OpenRequests) {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#limits = limits
    this.#room = limits.keptBytes ?? limits.maxBytes
    this.#open = open
    this.#timer = setTimeout(() => this.#late(), limits.headMs)
    open?.add(this)
  }

  onRequestStart(request: Dispatcher.DispatchController): void {
    this.#request = request
    if (this.#failure !== undefined) request.abort(this.#failure)
  }

  onResponseStart(_request: Dispatcher.DispatchController, status: number, headers: Answer['headers']): void {
    // Informational answers come before the answer.
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    const encoding = String(headers['content-encoding'] ?? '')
    if (/^(?:identity)?$/i.test(encoding)) return
    this.#room = 0
    if (this.#mustBeWhole) this.abort(new Error(`it answered with the encoding ${encoding}`))
  }

  onResponseData(_request: Dispatcher.DispatchController, chunk: Uint8Array): void {
    // Copied: the chunk is a part of the buffer of the connection.
    if (this.#room > 0) this.#kept.push(Buffer.from(chunk.subarray(0, this.#room)))
    this.#room -= chunk.byteLength
    this.#read += chunk.byteLength
    const { maxBytes } = this.#limits
    if (this.#read <= maxBytes) return
    if (this.#mustBeWhole) {
      this.abort(new Error(`it answered with more than ${maxBytes} bytes`))
      return
    }
    this.#release()
    this.#resolve(this.#complete())
    this.#request?.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    this.#release()
    const answer = this.#complete()
    // undici frees the connection in the next tick of the event loop. A request before that would open another one.
    queueMicrotask(() => setImmediate(this.#resolve, answer))
  }

  onResponseError(_request: unknown, error: Error): void {
    this.#release()
    this.#reject(error)
  }

  /** Ends the request, and rejects with the reason. */
  abort(reason: Error): void {
    this.#release()
    this.#failure ??= reason
    this.#reject(reason)
    this.#request?.abort(reason)
  }

  get #mustBeWhole(): boolean {
    return this.#limits.keptBytes === undefined
  }

  #complete(): Answer {
    const text = this.#kept.length === 0 ? '' : Buffer.concat(this.#kept).toString('utf8')
    return { status: this.#status, headers: this.#headers, text }
  }

  #late(): void {
    const { headMs, restMs = 0 } = this.#limits
    if (restMs === 0) this.abort(new Error('it did not answer in time'))
    else if (this.#status === 0) this.abort(new Error(`no answer within ${headMs / 1000} s`))
    else this.#timer = setTimeout(() => this.abort(new Error('the answer did not end in time')), restMs)
  }

  #release(): void {
    clearTimeout(this.#timer)
    this.#open?.delete(this)
  }
}
