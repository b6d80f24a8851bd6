import { Buffer } from 'node:buffer'

import type { Dispatcher } from 'undici'

import type { EndpointAnswer } from '../format.ts'
import type { OpenRequest, OpenRequests } from './open-requests.ts'

/** The time from the start of a request to the head of its answer, in ms. */
export const HEAD_MS = 10_000

/** The additional time for the rest of the answer, in ms. */
const REST_MS = 5_000

/** The most bytes of an answer that are read, and that are kept. */
const READ_BYTES = 65_536
const KEPT_BYTES = 4_096

/**
 * Reads the answer to one request, within limits of time and size. It is the handler of undici's `dispatch`: the stream
 * that `request` makes of an answer costs as much as the rest of the request.
 */
export class AnswerReader implements Dispatcher.DispatchHandler, OpenRequest {
  /** Resolves with the answer. Rejects without one in time, and with the reason of {@link abort}. */
  readonly answer: Promise<EndpointAnswer>
  readonly #resolve: (answer: EndpointAnswer) => void
  readonly #reject: (error: Error) => void
  readonly #open: OpenRequests | undefined
  #timer: NodeJS.Timeout
  /** The request in progress; `undefined` until it has a connection. */
  #request: Dispatcher.DispatchController | undefined
  #failure: Error | undefined
  #status = 0
  #headers: EndpointAnswer['headers'] = {}
  #kept: Buffer[] = []
  #read = 0
  /** `true` for a body that is compressed although the request asked for none: it is not text. */
  #encoded = false

  /** @param open The requests that are aborted together with this one */
  constructor(open: OpenRequests | undefined) {
    const { promise, resolve, reject } = Promise.withResolvers<EndpointAnswer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#open = open
    this.#timer = setTimeout(() => this.#lateHead(), HEAD_MS)
    open?.add(this)
  }

  onRequestStart(request: Dispatcher.DispatchController): void {
    this.#request = request
    if (this.#failure !== undefined) request.abort(this.#failure)
  }

  onResponseStart(_request: Dispatcher.DispatchController, status: number, headers: EndpointAnswer['headers']): void {
    // Informational answers come before the answer.
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    this.#encoded = !/^(?:identity)?$/i.test(String(headers['content-encoding'] ?? ''))
  }

  onResponseData(_request: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const room = this.#encoded ? 0 : KEPT_BYTES - this.#read
    // Copied: the chunk is a part of the buffer of the connection.
    if (room > 0) this.#kept.push(Buffer.from(chunk.subarray(0, room)))
    this.#read += chunk.byteLength
    if (this.#read <= READ_BYTES) return
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

  onResponseError(_request: Dispatcher.DispatchController, error: Error): void {
    this.#release()
    this.#reject(error)
  }

  #complete(): EndpointAnswer {
    const text = this.#kept.length === 0 ? '' : Buffer.concat(this.#kept).toString('utf8')
    return { status: this.#status, headers: this.#headers, text }
  }

  #lateHead(): void {
    if (this.#status === 0) this.#fail(new Error(`no answer within ${HEAD_MS / 1000} s`))
    else this.#timer = setTimeout(() => this.#fail(new Error('the answer did not end in time')), REST_MS)
  }

  /** Ends the request, and rejects with the reason. */
  abort(reason: Error): void {
    this.#fail(reason)
  }

  #fail(error: Error): void {
    this.#release()
    this.#failure = error
    this.#reject(error)
    this.#request?.abort(error)
  }

  #release(): void {
    clearTimeout(this.#timer)
    this.#open?.delete(this)
  }
}
