import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import { JSON_RPC_CODES, JsonRpcError, jsonRpcErrorText, JsonRpcExchange } from '@signalbox/http-kit'
import type { Refusal, RefusedOutcome } from '@signalbox/http-kit'

import type { A2aRequestEvent } from './options.ts'

/** The outcome of an error that is the agent's own (A14). */
export const AGENTS_OWN = 'agent'

/** One HTTP request to an agent, and the one answer to it. */
export class A2aExchange extends JsonRpcExchange {
  /** For metrics. */
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

  /** A JSON-RPC error of the gateway's, whether or not the body was read: 200 but where J3 fixes another status. */
  fail(error: JsonRpcError, id: string | undefined = error.id): void {
    this.#fail(error, id)
  }

  protected override answerError(error: JsonRpcError, _outcome: RefusedOutcome, headers?: OutgoingHttpHeaders): void {
    this.#fail(error, error.id, headers)
  }

  /** The gateway says every limit as it says that of an agent (specification, "Transport versus application errors"). */
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

  /** An answer without a body. */
  empty(status: number, headers?: OutgoingHttpHeaders): void {
    if (this.begin()) this.send(status, { ...this.moreHeaders, ...headers }, '')
  }

  /** A1: told before anything else is looked at, and no request to an agent. */
  notAllowed(allowed: string): void {
    if (this.begin()) this.sendRefusal(405, { ...this.moreHeaders, Allow: allowed }, '')
  }

  /** What goes into the head of an answer that somebody else gives, such as CORS headers. */
  takeHeaders(): OutgoingHttpHeaders {
    this.begin()
    return { ...this.moreHeaders }
  }

  /** For an answer that was given in another way, such as a stream that is over. */
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
