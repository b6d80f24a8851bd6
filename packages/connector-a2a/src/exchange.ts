import { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { jsonRpcErrorText, refuseBody } from '@signalbox/http-kit'
import type { JsonRpcError } from '@signalbox/http-kit'

import type { A2aRequestEvent } from './options.ts'

/** The outcome of an error that is the agent's own (A14). */
export const AGENTS_OWN = 'agent'

/** One HTTP request to an agent, and the one answer to it. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** For metrics. */
  agentId = 'unknown'
  method = 'unknown'
  readonly #moreHeaders: OutgoingHttpHeaders | undefined
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined
  readonly #startedAt: number
  #answered = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((event: A2aRequestEvent) => void) | undefined,
  ) {
    this.request = request
    this.response = response
    this.#moreHeaders = moreHeaders
    this.#onFinished = onFinished
    this.#startedAt = onFinished === undefined ? 0 : performance.now()
  }

  /** `id` and `result` are source text: neither is re-shaped (A4). */
  succeed(id: string, result: string): void {
    this.#json(200, `{"jsonrpc":"2.0","id":${id},"result":${result}}`)
    this.finished('success')
  }

  /** The agent's own error, in source text. */
  failAsAgent(id: string, error: string): void {
    this.#json(200, `{"jsonrpc":"2.0","id":${id},"error":${error}}`)
    this.finished('error', AGENTS_OWN)
  }

  /** A JSON-RPC error of the gateway's: 200 but where J3 fixes another status. */
  fail(error: JsonRpcError, id: string | undefined = error.id): void {
    this.#json(error.status ?? 200, jsonRpcErrorText(error, id))
    this.finished('error', String(error.code))
  }

  /** As {@link fail}, for a request whose body was not read, or not to its end. */
  refuse(error: JsonRpcError): void {
    if (this.#answered) return
    this.#answered = true
    const headers = { ...this.#moreHeaders, 'Content-Type': 'application/json' }
    refuseBody(this.request, this.response, error.status ?? 200, headers, jsonRpcErrorText(error))
    this.finished('error', String(error.code))
  }

  /** An answer without a body. */
  empty(status: number, headers?: OutgoingHttpHeaders): void {
    if (this.#answered) return
    this.#answered = true
    this.response.writeHead(status, { ...this.#moreHeaders, ...headers, 'Content-Length': 0 })
    this.response.end()
  }

  /** A1: told before anything else is looked at, and no request to an agent. */
  notAllowed(allowed: string): void {
    this.#answered = true
    refuseBody(this.request, this.response, 405, { ...this.#moreHeaders, Allow: allowed }, '')
  }

  /** What goes into the head of an answer that somebody else gives, such as CORS headers. */
  takeHeaders(): OutgoingHttpHeaders {
    this.#answered = true
    return { ...this.#moreHeaders }
  }

  /** Seconds since the request came. */
  get seconds(): number {
    return (performance.now() - this.#startedAt) / 1000
  }

  /** For an answer that was given in another way, such as a stream that is over. */
  finished(status: A2aRequestEvent['status'], errorCode?: string, firstByteSeconds?: number): void {
    if (this.#onFinished === undefined) return
    const { agentId, method, seconds } = this
    this.#onFinished({
      agentId,
      method,
      status,
      errorCode,
      seconds,
      firstByteSeconds: firstByteSeconds ?? seconds,
    })
  }

  #json(status: number, text: string): void {
    if (this.#answered) return
    this.#answered = true
    const { response } = this
    if (response.destroyed) return
    response.writeHead(status, {
      ...this.#moreHeaders,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(text)
  }
}
