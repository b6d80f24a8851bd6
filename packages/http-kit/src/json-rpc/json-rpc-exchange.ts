import type { OutgoingHttpHeaders } from 'node:http'

import type { Refusal, RefusedOutcome } from '../admission/refusal.ts'
import { readBody, REFUSED_BODY_BYTES } from '../body.ts'
import { HttpExchange } from '../endpoint/http-exchange.ts'
import { authenticationFailed, JsonRpcError } from '../errors.ts'
import { internalError } from './answer.ts'
import { JSON_RPC_CODES } from './codes.ts'
import { readRequestId } from './message.ts'

/** An exchange on a surface that speaks JSON-RPC. Reports refusals and failures as JSON-RPC errors. */
export abstract class JsonRpcExchange extends HttpExchange {
  /** The source text of the request's id, after it was read. */
  id: string | undefined

  /** Answers with an error, whether or not the body was read. */
  protected abstract answerError(error: JsonRpcError, outcome: RefusedOutcome, headers?: OutgoingHttpHeaders): void

  override refuse(refusal: Refusal): void {
    if (refusal.reason === 'unauthenticated') {
      this.#withRequestId((id) => this.answerError(authenticationFailed(id), 'unauthenticated'))
      return
    }
    const { retryAfterSeconds } = refusal
    const headers = retryAfterSeconds === undefined ? undefined : { 'Retry-After': String(retryAfterSeconds) }
    this.answerError(this.refusalError(refusal), refusal.outcome, headers)
  }

  override crash(cause: unknown): void {
    const crashed = (id?: string): void => this.answerError(internalError(cause, id), 'error')
    if (this.id !== undefined || this.request.readableDidRead) crashed(this.id)
    else this.#withRequestId(crashed)
  }

  /** Returns the JSON-RPC error for a refused request. */
  protected refusalError({ reason, message, status }: Refusal): JsonRpcError {
    switch (reason) {
      case 'body_too_large':
        return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${message}`, { status })
      case 'origin':
      case 'host':
      case 'cross_site':
        return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, message, { status })
      default:
        return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, message, { status })
    }
  }

  /** Reads the body up to {@link REFUSED_BODY_BYTES}, only to echo the request's id. */
  #withRequestId(answer: (id?: string) => void): void {
    const { request } = this
    if (request.method !== 'POST' || request.headers['content-encoding'] !== undefined) {
      answer()
      return
    }
    readBody(request, REFUSED_BODY_BYTES, (tooLarge, body) => {
      try {
        answer(tooLarge === undefined ? readRequestId(body) : undefined)
      } catch {
        this.response.destroy()
      }
    })
  }
}
