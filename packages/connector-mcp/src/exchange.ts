import { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import {
  errorText,
  eventText,
  JSON_RPC_CODES,
  refuseBody,
  SSE_HEADERS,
  SseStream,
  successText,
} from '@signalbox/http-kit'
import type { JsonRpcError } from '@signalbox/http-kit'

import type { Accepted } from './accept.ts'
import { acceptedBy } from './accept.ts'
import type { McpOutcome } from './options.ts'
import type { ProtocolHeaders } from './session.ts'
import { checkProtocolHeaders, readProtocolHeaders } from './session.ts'
import type { Settlement, Settlements } from './settlements.ts'
import type { Revision } from './wire/revision.ts'
import { LATEST_REVISION } from './wire/revisions.ts'

/** One HTTP request and the one answer to it, in the form its client reads. */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly #moreHeaders: OutgoingHttpHeaders | undefined
  readonly #onFinished: ((exchange: Exchange, outcome: McpOutcome) => void) | undefined
  readonly startedAt: number
  readonly #named: ProtocolHeaders
  /** What the request speaks: what it named if that is one of ours, else the latest (M1). */
  revision: Revision
  sessionId: string | undefined
  /** For metrics. */
  method = 'unknown'
  tool: string | undefined
  #stream: SseStream | undefined
  #answered = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((exchange: Exchange, outcome: McpOutcome) => void) | undefined,
  ) {
    this.request = request
    this.response = response
    this.#moreHeaders = moreHeaders
    this.#onFinished = onFinished
    this.startedAt = performance.now()
    this.#named = readProtocolHeaders(request.headers)
    this.revision = this.#named.revision ?? LATEST_REVISION
    this.sessionId = this.#named.sessionId
  }

  /** @throws JsonRpcError -32600 for headers that name something unknown or malformed (M1, M2) */
  checkHeaders(id?: string): void {
    checkProtocolHeaders(this.request.headers, this.#named, id)
  }

  get accepted(): Accepted {
    return acceptedBy(this.request.headers.accept)
  }

  /** The client went away before it had its answer. */
  get abandoned(): boolean {
    return this.response.destroyed
  }

  /** A JSON-RPC success; `result` is JSON text. */
  succeed(id: string, result: string, outcome: McpOutcome = 'success', unsettled?: Unsettled): void {
    this.#answer(200, successText(id, result), outcome, unsettled)
  }

  /** A JSON-RPC error with the status of J3. */
  fail(error: JsonRpcError, id: string | undefined = error.id, outcome: McpOutcome = 'error'): void {
    this.#answer(error.status ?? statusOf(error.code), errorText(id, error.code, error.message, error.data), outcome)
  }

  /** As {@link fail}, for a request whose body was not read, or not to its end. */
  refuse(error: JsonRpcError, outcome: McpOutcome = 'error'): void {
    if (this.#answered) return
    this.#answered = true
    const text = errorText(error.id, error.code, error.message, error.data)
    const headers = this.#headers()
    headers['Content-Type'] = 'application/json'
    refuseBody(this.request, this.response, error.status ?? statusOf(error.code), headers, text)
    this.#finished(outcome)
  }

  /** An answer without a body. */
  empty(status: number, outcome: McpOutcome = 'success', headers?: OutgoingHttpHeaders): void {
    if (this.#answered) return
    this.#answered = true
    if (this.#stream !== undefined) {
      this.#stream.end()
    } else {
      this.response.writeHead(status, { ...this.#headers(), ...headers, 'Content-Length': 0 })
      this.response.end()
    }
    this.#finished(outcome)
  }

  /** Begins a stream as the answer, with the head written at once. */
  openStream(keepAliveMs: number, endsAt?: number): SseStream {
    this.#stream ??= new SseStream(this.response, {
      headers: this.#headers(),
      keepAliveMs,
      ...(endsAt === undefined ? {} : { endsAt }),
    })
    return this.#stream
  }

  /** The answer was given in another way, or there is nobody to give it to. */
  finish(outcome: McpOutcome): void {
    if (this.#answered) return
    this.#answered = true
    this.#stream?.end()
    this.#finished(outcome)
  }

  #answer(status: number, text: string, outcome: McpOutcome, unsettled?: Unsettled): void {
    if (this.#answered) return
    this.#answered = true
    const { response } = this
    if (response.destroyed) {
      unsettled?.settlements.settle(unsettled.settlement, 'rollback')
      this.#finished('disconnected')
      return
    }
    let chunk = text
    if (this.#stream !== undefined) {
      this.#stream.release()
      chunk = eventText({ event: 'message', data: text })
    } else {
      const headers = this.#headers()
      if (status === 200 && !this.accepted.json) {
        chunk = eventText({ event: 'message', data: text })
        Object.assign(headers, SSE_HEADERS)
      } else {
        headers['Content-Type'] = 'application/json'
      }
      headers['Content-Length'] = Buffer.byteLength(chunk)
      response.writeHead(status, headers)
    }
    if (unsettled === undefined) response.end(chunk)
    else unsettled.settlements.deliver(response, chunk, unsettled.settlement)
    this.#finished(outcome)
  }

  #headers(): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = { ...this.#moreHeaders, 'MCP-Protocol-Version': this.revision.version }
    if (this.sessionId !== undefined) headers['MCP-Session-Id'] = this.sessionId
    return headers
  }

  #finished(outcome: McpOutcome): void {
    this.#onFinished?.(this, outcome)
  }
}

/** Messages on lease that travel in an answer (M14). */
export interface Unsettled {
  readonly settlements: Settlements
  readonly settlement: Settlement
}

/** J3, where the error fixes no status of its own. */
function statusOf(code: number): number {
  return code === JSON_RPC_CODES.PARSE_ERROR || code === JSON_RPC_CODES.INVALID_REQUEST ? 400 : 200
}
