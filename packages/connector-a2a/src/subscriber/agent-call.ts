import { Buffer } from 'node:buffer'
import type { AgentQuery, AgentReply } from '@signalbox/registry'
import type { Dispatcher } from 'undici'

import {
  AGENT_TIMEOUT,
  connectionFailure,
  invalidResponse,
  PROXY_REFUSED,
  RESPONSE_TOO_LARGE,
  agentUnavailable,
} from './agent-failures.ts'
import { AgentResponse } from './agent-response.ts'
import type { AgentTarget } from './agent-target.ts'
import { decodeContent, isEncoded } from './content-encoding.ts'
import { requestHeaders } from './request-headers.ts'

/** What came of a call. */
export interface CallResult {
  readonly reply: AgentReply
  /** With mode `stream` and a 2xx status: the agent's response, its body untouched. Whoever gets it has to end it. */
  readonly events?: AgentResponse
}

/** A header that comes again is an array. */
type Headers = Readonly<Record<string, string | string[] | undefined>>

const MAX_TIMER_MS = 2_147_483_647
const NO_BODY = new Uint8Array(0)
const EMPTY = Buffer.alloc(0)

/**
 * One HTTP exchange with an agent. It is sent once and never again: that a connection broke does not say that the agent
 * did not act. Redirects are not followed.
 *
 * Mode `stream` ends at the headers of a 2xx response, every other at the end of the response. The deadline is for all
 * of that (A2).
 */
export class AgentCall implements Dispatcher.DispatchHandler {
  readonly #query: AgentQuery
  readonly #maxResponseBytes: number
  readonly #done: (result: CallResult) => void
  readonly #timer: NodeJS.Timeout
  /** Set as soon as the request is written. */
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #status = 0
  #encoding: string | undefined
  #events: AgentResponse | undefined
  #first: Buffer | undefined
  #chunks: Buffer[] | undefined
  #bytes = 0

  constructor(query: AgentQuery, maxResponseBytes: number, done: (result: CallResult) => void) {
    this.#query = query
    this.#maxResponseBytes = maxResponseBytes
    this.#done = done
    this.#timer = setTimeout(() => this.#fail(AGENT_TIMEOUT), Math.min(query.timeoutMs, MAX_TIMER_MS))
    this.#timer.unref()
  }

  /** Sends the request, unless the call was aborted. `done` is called once, and perhaps before this returns. */
  send(target: AgentTarget): void {
    if (!this.#settled) target.post(requestHeaders(target.host, this.#query), this.#query.body, this)
  }

  /** Breaks it off at once, with this reply. After the end nothing happens. */
  abort(reply: AgentReply): void {
    this.#fail(reply)
  }

  /** @inheritdoc A call that ended while it waited for its connection is not sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#settled) controller.abort(new Error('the call is over'))
  }

  /** @inheritdoc */
  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // An informational response is followed by the one that counts.
    if (this.#settled || status < 200) return
    const { mode } = this.#query
    this.#status = status
    if (status === 502 || status === 503 || status === 504) {
      this.#fail(agentUnavailable(status))
      return
    }
    // Only a proxy says so (RFC 9110, section 15.5.8): the agent never saw the request.
    if (status === 407) {
      this.#fail(PROXY_REFUSED)
      return
    }
    this.#encoding = first(headers['content-encoding'])
    const contentType = first(headers['content-type'])
    if (mode === 'stream' && status <= 299) {
      if (isEncoded(this.#encoding)) {
        this.#fail(invalidResponse(status))
      } else {
        this.#events = new AgentResponse({ 'content-type': contentType }, controller)
        this.#settle({ reply: { executed: true, error: '', status, body: NO_BODY }, events: this.#events })
      }
      return
    }
    if (isEventStream(contentType)) this.#fail(invalidResponse(status))
    else if (Number(headers['content-length']) > this.#maxResponseBytes) this.#fail(RESPONSE_TOO_LARGE)
  }

  /** @inheritdoc */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#events !== undefined) {
      this.#events.feed(chunk)
      return
    }
    if (this.#settled) return
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#maxResponseBytes) this.#fail(RESPONSE_TOO_LARGE)
    else if (this.#first === undefined) this.#first = chunk
    else (this.#chunks ??= [this.#first]).push(chunk)
  }

  /** @inheritdoc */
  onResponseEnd(): void {
    if (this.#events !== undefined) {
      this.#events.push(null)
      return
    }
    if (this.#settled) return
    const status = this.#status
    const body = this.#chunks === undefined ? (this.#first ?? EMPTY) : Buffer.concat(this.#chunks, this.#bytes)
    if (isEncoded(this.#encoding) && body.byteLength > 0) {
      this.#controller = undefined
      decodeContent(this.#encoding, { status, body }, this.#maxResponseBytes, (reply) => this.#settle({ reply }))
    } else {
      this.#settle({ reply: { executed: true, error: '', status, body } })
    }
  }

  /** @inheritdoc */
  onResponseError(_controller: unknown, error: Error): void {
    this.#events?.destroy(error)
    // Once the head of a response was there, the agent had the request.
    this.#settle({ reply: this.#status === 0 ? connectionFailure(error) : invalidResponse(this.#status) })
  }

  #fail(reply: AgentReply): void {
    if (this.#settled) return
    this.#settle({ reply })
    this.#controller?.abort(new Error('the call is over'))
  }

  #settle(result: CallResult): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#first = this.#chunks = undefined
    this.#done(result)
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}

function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^text\/event-stream\s*(?:;|$)/i.test(contentType)
}
