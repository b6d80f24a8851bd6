import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { JSON_RPC_CODES, JsonRpcError, jsonRpcErrorText, JsonRpcExchange } from '@signalbox/http-kit'
import type { Refusal, RefusedOutcome } from '@signalbox/http-kit'

import type { A2aRequestEvent } from './options.ts'

/** The outcome of a request that the agent answers with its own JSON-RPC error. */
export const AGENTS_OWN = 'agent'

/** One HTTP request to an agent, and its one answer. */
export class A2aExchange extends JsonRpcExchange {
  /** The agent's id as a metric label; `unknown` until the agent is found. */
  agentId = 'unknown'
  method = 'unknown'
  readonly #onFinished: ((event: A2aRequestEvent) => void) | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((event: A2aRequestEvent) => void) | undefined,
  ) {
    super(request, response, moreHeaders)
    this.#onFinished = onFinished
  }

  /** Answers with a result. `id` and `result` are JSON source text and are sent unchanged. */
  succeed(id: string, result: string): void {
    this.#json(200, `{"jsonrpc":"2.0","id":${id},"result":${result}}`)
    this.finished('success')
  }

  /** Answers with the agent's own error, JSON source text that is sent unchanged. */
  failAsAgent(id: string, error: string): void {
    this.#json(200, `{"jsonrpc":"2.0","id":${id},"error":${error}}`)
    this.finished('error', AGENTS_OWN)
  }

  /**
   * Answers with a JSON-RPC error of the gateway. The HTTP status is 200 unless the error has its
   * own status. The body need not have been read.
   */
  fail(error: JsonRpcError, id: string | undefined = error.id): void {
    this.#fail(error, id)
  }

  protected override answerError(error: JsonRpcError, _outcome: RefusedOutcome, headers?: OutgoingHttpHeaders): void {
    this.#fail(error, error.id, headers)
  }

  /**
   * Maps a refusal to a JSON-RPC error. Every exceeded limit is `server busy`, as for a busy agent.
   */
  protected override refusalError(refusal: Refusal): JsonRpcError {
    if (refusal.reason !== 'limit') return super.refusalError(refusal)
    return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, `server busy: ${refusal.message}`)
  }

  #fail(error: JsonRpcError, id: string | undefined, moreHeaders?: OutgoingHttpHeaders): void {
    const text = jsonRpcErrorText(error, id)
    const status = error.status ?? 200
    if (this.request.readableEnded) this.#json(status, text, moreHeaders)
    else if (this.begin()) this.sendRefusal(status, this.#headers(moreHeaders), text)
    this.finished('error', String(error.code))
  }

  /** Answers with a status and no body. */
  empty(status: number, headers?: OutgoingHttpHeaders): void {
    if (this.begin()) this.send(status, { ...this.moreHeaders, ...headers }, '')
  }

  /**
   * Answers 405. The gateway checks the method first, so such a request is not counted as a request
   * to an agent.
   */
  notAllowed(allowed: string): void {
    if (this.begin()) this.sendRefusal(405, { ...this.moreHeaders, Allow: allowed }, '')
  }

  /**
   * Begins an answer that other code writes, and returns its additional headers, such as CORS
   * headers.
   */
  takeHeaders(): OutgoingHttpHeaders {
    this.begin()
    return { ...this.moreHeaders }
  }

  /** Reports the outcome to the hooks, for an answer that other code wrote, such as a stream. */
  finished(status: 'success' | 'error', errorCode?: string, firstByteSeconds?: number): void {
    if (this.#onFinished === undefined) return
    const { agentId, method, seconds } = this
    this.#onFinished({ agentId, method, status, errorCode, seconds, firstByteSeconds: firstByteSeconds ?? seconds })
  }

  #json(status: number, text: string, moreHeaders?: OutgoingHttpHeaders): void {
    if (this.begin() && !this.abandoned) this.send(status, this.#headers(moreHeaders), text)
  }

  #headers(moreHeaders?: OutgoingHttpHeaders): OutgoingHttpHeaders {
    return { ...this.moreHeaders, ...moreHeaders, 'Content-Type': 'application/json' }
  }
}
