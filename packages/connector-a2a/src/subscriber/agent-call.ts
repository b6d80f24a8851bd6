import type { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'

import { ReadingTurns } from '@signalbox/http-kit/internal'
import type { AgentTarget } from '@signalbox/registry'
import type { Span } from '@signalbox/broker-core'
import type { Dispatcher } from 'undici'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentBody } from '../stream/agent-stream.ts'
import type { EventConverter } from '../stream/events.ts'
import { AGENT_TIMEOUT, agentUnavailable, connectionFailure, invalidResponse, PROXY_REFUSED } from './agent-failures.ts'
import { relayedHeaders, requestHeaders } from './agent-headers.ts'
import type { ReplyBody } from './reply-body.ts'

/** The result of a call. */
export interface CallResult {
  readonly reply: AgentReply
  /**
   * The agent's response with an unread body, for mode `stream` and a 2xx status; for requests in a
   * version of A2A only if it is an event stream. The receiver must end it.
   */
  readonly events?: AgentBody | undefined
  /** Converts the events for the client. @default to the gateway's own events */
  readonly converter?: EventConverter | undefined
}

/** Reads a chunk of a response that is relayed as a stream. The chunk waits for the promise, if there is one. */
type StreamTap = (chunk: Buffer) => Promise<unknown> | undefined

/** A repeated header is an array. */
type Headers = Readonly<Record<string, string | string[] | undefined>>

const MAX_TIMER_MS = 2_147_483_647
const NO_BODY = new Uint8Array(0)

/**
 * One HTTP exchange with an agent. It is sent once and never repeated: after a broken connection
 * the agent may have acted. Redirects are not followed.
 *
 * If the response is relayed as a stream it ends at the headers, otherwise at the end of the
 * response. The deadline applies to that whole time.
 */
export class AgentCall implements Dispatcher.DispatchHandler {
  readonly #query: AgentQuery
  readonly #body: ReplyBody
  readonly #done: (result: CallResult) => void
  readonly #tap: StreamTap
  readonly #timer: NodeJS.Timeout
  readonly #turns: ReadingTurns
  /** Set as soon as the request is written. */
  #controller: Dispatcher.DispatchController | undefined
  /** True once the client began to write the request. */
  #written = false
  #settled = false
  #status = 0
  #isFirst = true
  #relayed: AgentReply['headers']
  #events: AgentResponse | undefined
  readonly #span: Span | undefined

  /**
   * @param body Takes the body of a response that is not relayed as a stream
   * @param tap Called with each chunk of a response that is relayed as a stream, before it can be read
   * @param span The span of the exchange, if it is recorded. Ends with the response
   */
  constructor(query: AgentQuery, body: ReplyBody, done: (result: CallResult) => void, tap: StreamTap, span?: Span) {
    this.#tap = tap
    this.#span = span
    this.#query = query
    this.#body = body
    this.#done = done
    this.#turns = new ReadingTurns(query.account)
    this.#timer = setTimeout(() => this.#fail(AGENT_TIMEOUT), Math.min(query.timeoutMs, MAX_TIMER_MS))
    this.#timer.unref()
  }

  /**
   * Sends the request, unless the call was aborted. `done` is called once, possibly before this
   * returns.
   */
  send(target: AgentTarget): void {
    if (this.#settled) return
    const { body, rest } = this.#query
    const headers = requestHeaders(target.host, this.#query, this.#span?.headers())
    if (rest === undefined) target.request('POST', headers, body, this)
    else target.request(rest.method, headers, rest.method === 'POST' ? body : null, this, rest.path)
  }

  /** Aborts the call at once with this reply. Has no effect after the end. */
  abort(reply: AgentReply): void {
    this.#fail(reply)
  }

  /** @inheritdoc A call that ended while it waited for a connection is not sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#written = true
    if (this.#settled) controller.abort(new Error('the call has ended'))
  }

  /** @inheritdoc */
  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // The final response follows an informational one.
    if (this.#settled || status < 200) return
    const { mode, wire } = this.#query
    this.#status = status
    if (wire !== undefined) this.#relayed = relayedHeaders(status, headers)
    if (status === 502 || status === 503 || status === 504) {
      this.#fail(agentUnavailable(status))
      return
    }
    // Only a proxy answers 407 (RFC 9110, section 15.5.8): the agent did not get the request.
    if (status === 407) {
      this.#fail(PROXY_REFUSED)
      return
    }
    // The request allows no compression: a few bytes could become millions.
    if (isEncoded(headers['content-encoding'])) {
      this.#fail(invalidResponse(status))
      return
    }
    const contentType = first(headers['content-type'])
    if (mode === 'stream' && status <= 299 && (wire === undefined || isEventStream(contentType))) {
      this.#events = new AgentResponse({ 'content-type': contentType }, controller)
      this.#settle({ reply: { executed: true, error: '', status, body: NO_BODY }, events: this.#events })
      return
    }
    const failure = isEventStream(contentType)
      ? invalidResponse(status)
      : this.#body.declare(Number(headers['content-length'] ?? 0))
    if (failure !== undefined) this.#fail(failure)
  }

  /** @inheritdoc */
  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#events !== undefined) {
      if (this.#isFirst) this.#span?.event('first_byte')
      this.#isFirst = false
      this.#events.feed(chunk, this.#tap(chunk))
      return
    }
    if (this.#settled) return
    const failure = this.#body.add(chunk)
    if (failure !== undefined) this.#fail(failure)
    else this.#turns.read(chunk.byteLength, controller)
  }

  /** @inheritdoc */
  onResponseEnd(): void {
    if (this.#events !== undefined) {
      this.#events.feed(null)
      return
    }
    if (this.#settled) return
    this.#settle({ reply: { executed: true, error: '', status: this.#status, body: this.#body.take() } })
  }

  /** @inheritdoc */
  onResponseError(_controller: unknown, error: Error): void {
    this.#events?.destroy(error)
    // The agent got the request if it has sent the head of a response.
    if (this.#status !== 0) this.#settle({ reply: invalidResponse(this.#status) })
    else this.#settle({ reply: connectionFailure(error, this.#written) })
  }

  #fail(reply: AgentReply): void {
    if (this.#settled) return
    this.#settle({ reply })
    this.#controller?.abort(new Error('the call has ended'))
  }

  #settle(result: CallResult): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    if (result.reply.body.byteLength === 0) this.#body.drop()
    if (this.#span !== undefined) this.#trace(this.#span, result)
    this.#done(this.#query.wire === undefined ? result : this.#described(result))
  }

  #trace(span: Span, { reply, events }: CallResult): void {
    if (this.#status !== 0) span.set({ 'http.response.status_code': this.#status })
    const failure = reply.failure ?? (reply.executed ? undefined : reply.error)
    if (failure !== undefined) span.fail(failure)
    else if (this.#status >= 400) span.fail(String(this.#status))
    if (events === undefined) span.end()
    else this.#events?.once('close', () => span.end())
  }

  /** Adds to the reply the headers and the kind of body that a request in a version of A2A needs. */
  #described({ reply, events }: CallResult): CallResult {
    const headers = this.#relayed === undefined ? {} : { headers: this.#relayed }
    if (events !== undefined) return { reply: { ...reply, ...headers }, events }
    return { reply: { ...reply, ...headers, ...(this.#query.mode === 'stream' ? { whole: true } : {}) } }
  }
}

function first(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}

/** Returns true for every Content-Encoding but `identity`, which is none. */
function isEncoded(encoding: string | string[] | undefined): boolean {
  return encoding !== undefined && /[^\s,]/.test(String(encoding).replaceAll(/identity/gi, ''))
}

function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^text\/event-stream\s*(?:;|$)/i.test(contentType)
}

const READ_AHEAD_BYTES = 65_536

/**
 * The body of an agent's response. Reads at most {@link READ_AHEAD_BYTES} ahead of its reader. Ends
 * only when the body is complete; a response that was cut off is destroyed with an error.
 */
class AgentResponse extends Readable implements AgentBody {
  readonly headers: AgentBody['headers']
  readonly #controller: Dispatcher.DispatchController
  /** The chunks that wait, while there is something to wait for. */
  #held: (Uint8Array | null)[] | undefined

  constructor(headers: AgentBody['headers'], controller: Dispatcher.DispatchController) {
    super({ highWaterMark: READ_AHEAD_BYTES })
    this.headers = headers
    this.#controller = controller
    // It may be cut off before it has a reader.
    this.on('error', () => {})
  }

  /**
   * Adds the next chunk of the body; null is its end.
   * @param until The chunk and those after it are not read before this promise resolves
   */
  feed(chunk: Uint8Array | null, until?: Promise<unknown>): void {
    if (until !== undefined) this.#hold(until)
    if (this.#held !== undefined) this.#held.push(chunk)
    else if (!this.push(chunk)) this.#controller.pause()
  }

  #hold(until: Promise<unknown>): void {
    const held: (Uint8Array | null)[] = []
    this.#held = held
    this.#controller.pause()
    until.then(
      () => {
        this.#held = undefined
        let hasRoom = true
        for (const chunk of held) hasRoom = this.push(chunk)
        // At once, the controller may add the next chunk, or the end.
        if (hasRoom) this.#controller.resume()
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  }

  /** @inheritdoc */
  override _read(): void {
    if (this.#held === undefined) this.#controller.resume()
  }

  /** @inheritdoc */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Has no effect after the end of the body.
    this.#controller.abort(error ?? new Error('the response has no reader any more'))
    done(error)
  }
}
