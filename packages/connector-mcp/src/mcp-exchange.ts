import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import {
  errorText,
  eventText,
  JSON_RPC_CODES,
  JsonRpcExchange,
  SSE_HEADERS,
  SseStream,
  successText,
} from '@signalbox/http-kit'
import type { JsonRpcError, Unsettled } from '@signalbox/http-kit'

import type { AcceptedMediaTypes } from './accept.ts'
import { acceptedBy } from './accept.ts'
import type { McpOutcome } from './options.ts'
import type { ProtocolHeaders } from './session.ts'
import { checkProtocolHeaders, readProtocolHeaders } from './session.ts'
import type { Revision } from './wire/revision.ts'
import { LATEST_REVISION } from './wire/revisions.ts'

/** One HTTP request to the MCP endpoint and its answer, as JSON or as an event stream. */
export class McpExchange extends JsonRpcExchange {
  readonly #onFinished: ((exchange: McpExchange, outcome: McpOutcome) => void) | undefined
  readonly #named: ProtocolHeaders
  #accepted: AcceptedMediaTypes | undefined
  /** The protocol revision of the request: the one it names if supported, otherwise the latest. */
  revision: Revision
  sessionId: string | undefined
  /** The name of the method, for metrics. */
  method = 'unknown'
  tool: string | undefined
  #stream: SseStream | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    moreHeaders: OutgoingHttpHeaders | undefined,
    onFinished: ((exchange: McpExchange, outcome: McpOutcome) => void) | undefined,
  ) {
    super(request, response, moreHeaders)
    this.#onFinished = onFinished
    this.#named = readProtocolHeaders(request.headers)
    this.revision = this.#named.revision ?? LATEST_REVISION
    this.sessionId = this.#named.sessionId
  }

  /** @throws JsonRpcError -32600 for an unsupported version or a malformed session id */
  checkHeaders(id?: string): void {
    checkProtocolHeaders(this.request.headers, this.#named, id)
  }

  get accepted(): AcceptedMediaTypes {
    this.#accepted ??= acceptedBy(this.request.headers.accept)
    return this.#accepted
  }

  /** Answers with a JSON-RPC success. `result` is JSON text. */
  succeed(id: string, result: string, outcome: McpOutcome = 'success', unsettled?: Unsettled): void {
    this.#answer(200, successText(id, result), outcome, unsettled)
  }

  /** Answers with a JSON-RPC error, with the HTTP status of its code. The body may be unread. */
  fail(error: JsonRpcError, id: string | undefined = error.id, outcome: McpOutcome = 'error'): void {
    this.#fail(error, id, outcome)
  }

  protected override answerError(error: JsonRpcError, outcome: McpOutcome, headers?: OutgoingHttpHeaders): void {
    this.#fail(error, error.id, outcome, headers)
  }

  #fail(error: JsonRpcError, id: string | undefined, outcome: McpOutcome, headers?: OutgoingHttpHeaders): void {
    const { code, data, message, status = statusOf(code) } = error
    const text = errorText(id, code, message, data)
    if (this.request.readableEnded || this.#stream !== undefined) {
      this.#answer(status, text, outcome, undefined, headers)
    } else if (this.begin()) {
      this.sendRefusal(status, { ...this.#headers(), ...headers, 'Content-Type': 'application/json' }, text)
      this.#finished(outcome)
    }
  }

  /** Answers without a body. */
  empty(status: number, outcome: McpOutcome = 'success', headers?: OutgoingHttpHeaders): void {
    if (!this.begin()) return
    if (this.#stream !== undefined) this.#stream.end()
    else this.send(status, { ...this.#headers(), ...headers }, '')
    this.#finished(outcome)
  }

  /** Starts a stream as the answer, and writes its head at once. */
  openStream(keepAliveMs: number, endsAt?: number): SseStream {
    this.#stream ??= new SseStream(this.response, {
      headers: this.#headers(),
      keepAliveMs,
      ...(this.hold === undefined ? {} : { hold: this.hold }),
      ...(endsAt === undefined ? {} : { endsAt }),
    })
    return this.#stream
  }

  /** Marks the request as finished if it was answered in another way or its client is gone. */
  finish(outcome: McpOutcome): void {
    if (!this.begin()) return
    this.#stream?.end()
    this.#finished(outcome)
  }

  #answer(
    status: number,
    text: string,
    outcome: McpOutcome,
    unsettled?: Unsettled,
    moreHeaders?: OutgoingHttpHeaders,
  ): void {
    if (!this.begin()) return
    if (this.abandoned) {
      unsettled?.settlements.settle(unsettled.settlement, 'rollback')
      this.#finished('disconnected')
      return
    }
    if (this.#stream !== undefined) {
      this.#stream.release()
      this.sendLast(eventText({ event: 'message', data: text }), unsettled)
    } else if (status === 200 && !this.accepted.json) {
      const headers = { ...this.#headers(), ...moreHeaders, ...SSE_HEADERS }
      this.send(status, headers, eventText({ event: 'message', data: text }), unsettled)
    } else {
      const headers = this.#headers()
      headers['Content-Type'] = 'application/json'
      if (moreHeaders !== undefined) Object.assign(headers, moreHeaders)
      this.send(status, headers, text, unsettled)
    }
    this.#finished(outcome)
  }

  #headers(): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = { ...this.moreHeaders, 'MCP-Protocol-Version': this.revision.version }
    if (this.sessionId !== undefined) headers['MCP-Session-Id'] = this.sessionId
    return headers
  }

  #finished(outcome: McpOutcome): void {
    this.#onFinished?.(this, outcome)
  }
}

/** Returns the HTTP status of an error code, for errors that set none. */
function statusOf(code: number): number {
  return code === JSON_RPC_CODES.PARSE_ERROR || code === JSON_RPC_CODES.INVALID_REQUEST ? 400 : 200
}
