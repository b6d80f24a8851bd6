import type { OutgoingHttpHeaders } from 'node:http'

import type { Refusal, RefusedOutcome } from '../admission/refusal.ts'
import { authenticationFailed, JSON_RPC_CODES, JsonRpcError } from '../errors.ts'
import { isRead, keptBody, LINGER_MS, readBody, REFUSED_BODY_BYTES } from '../surface/body.ts'
import { HttpExchange } from '../surface/http-exchange.ts'
import type { HttpRequest } from '../surface/http-message.ts'
import { internalError, readRequestHead } from './json-rpc.ts'
import type { RequestHead } from './json-rpc.ts'

/** An exchange on a surface that speaks JSON-RPC. Reports refusals and failures as JSON-RPC errors. */
export abstract class JsonRpcExchange extends HttpExchange {
  /** The source text of the request's id, after it was read. */
  id: string | undefined

  /** Answers with an error, whether or not the body was read. */
  protected abstract answerError(error: JsonRpcError, outcome: RefusedOutcome, headers?: OutgoingHttpHeaders): void

  override refuse(refusal: Refusal): void {
    if (refusal.reason === 'unauthenticated') {
      this.withRequestHead((head) => this.answerUnauthenticated(head, refusal.cause))
      return
    }
    const { retryAfterSeconds } = refusal
    const headers = retryAfterSeconds === undefined ? undefined : { 'Retry-After': String(retryAfterSeconds) }
    this.answerError(this.refusalError(refusal), refusal.outcome, headers)
  }

  override crash(cause: unknown): void {
    const crashed = (id?: string): void => this.answerError(internalError(cause, id), 'error')
    if (this.id !== undefined) crashed(this.id)
    else this.withRequestHead(({ id }) => crashed(id))
  }

  /**
   * Answers a caller without valid credentials.
   * @param _cause The error of the authenticator
   */
  protected answerUnauthenticated({ id }: RequestHead, _cause: unknown): void {
    this.answerError(authenticationFailed(id), 'unauthenticated')
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

  /**
   * Reads the body of a refused request up to {@link REFUSED_BODY_BYTES}, only to echo the request's id and to answer
   * in its protocol. A body that does not arrive within {@link LINGER_MS} is not waited for.
   */
  protected withRequestHead(answer: (head: RequestHead) => void): void {
    const { request } = this
    if (request.method !== 'POST' || request.headers['content-encoding'] !== undefined) {
      answer({})
      return
    }
    if (isRead(request)) {
      answer(headOfKept(request))
      return
    }
    let answered = false
    const once = (headOf: () => RequestHead): void => {
      if (answered) return
      answered = true
      clearTimeout(timer)
      try {
        answer(headOf())
      } catch {
        this.response.destroy()
      }
    }
    const timer = setTimeout(() => once(() => ({})), LINGER_MS)
    timer.unref()
    request.once('close', () => clearTimeout(timer))
    readBody(request, REFUSED_BODY_BYTES, (tooLarge, body) =>
      once(() => (tooLarge === undefined ? readRequestHead(body) : {})),
    )
  }
}

/** Returns the head in a body that the host has read; nothing if it is large, was not kept or is not JSON. */
function headOfKept(request: HttpRequest): RequestHead {
  try {
    const body = keptBody(request)
    return body.byteLength > REFUSED_BODY_BYTES ? {} : readRequestHead(body)
  } catch {
    return {}
  }
}
