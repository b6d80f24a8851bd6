import { Buffer } from 'node:buffer'

import type { Dispatcher } from 'undici'

import type { EndpointAnswer } from '../format.ts'

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
export class AnswerReader implements Dispatcher.DispatchHandler {
  /** Resolves with the answer. Rejects without one in time, and with the signal's reason. */
  readonly answer: Promise<EndpointAnswer>
  readonly #resolve: (answer: EndpointAnswer) => void
  readonly #reject: (error: Error) => void
  readonly #signal: AbortSignal | undefined
  readonly #aborted = (): void => this.#fail(reasonOf(this.#signal))
  #timer: NodeJS.Timeout
  /** The request in progress; `undefined` until it has a connection. */
  #request: Dispatcher.DispatchController | undefined
  #failure: Error | undefined
  #status = 0
  #headers: EndpointAnswer['headers'] = {}
  #kept: Buffer[] = []
  #read = 0

  constructor(signal: AbortSignal | undefined) {
    const { promise, resolve, reject } = Promise.withResolvers<EndpointAnswer>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#signal = signal
    this.#timer = setTimeout(() => this.#lateHead(), HEAD_MS)
    signal?.addEventListener('abort', this.#aborted)
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
  }

  onResponseData(_request: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const room = KEPT_BYTES - this.#read
    // Copied: the chunk is a part of the buffer of the connection.
    if (room > 0) this.#kept.push(Buffer.from(chunk.subarray(0, room)))
    this.#read += chunk.byteLength
    if (this.#read <= READ_BYTES) return
    this.onResponseEnd()
    this.#request?.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    this.#release()
    const text = this.#kept.length === 0 ? '' : Buffer.concat(this.#kept).toString('utf8')
    this.#resolve({ status: this.#status, headers: this.#headers, text })
  }

  onResponseError(_request: Dispatcher.DispatchController, error: Error): void {
    this.#release()
    this.#reject(error)
  }

  #lateHead(): void {
    if (this.#status === 0) this.#fail(new Error(`no answer within ${HEAD_MS / 1000} s`))
    else this.#timer = setTimeout(() => this.#fail(new Error('the answer did not end in time')), REST_MS)
  }

  #fail(error: Error): void {
    this.#release()
    this.#failure = error
    this.#reject(error)
    this.#request?.abort(error)
  }

  #release(): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#aborted)
  }
}

function reasonOf(signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new Error('the request was aborted')
}
