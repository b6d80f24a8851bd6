import { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { Refusal } from '../admission/refusal.ts'
import type { RequestHold } from '../admission/request-hold.ts'
import { refuseBody } from '../body.ts'
import type { Settlement, Settlements } from '../settlements.ts'

/** Messages on lease that travel in an answer (M14). */
export interface Unsettled {
  readonly settlements: Settlements
  readonly settlement: Settlement
}

/** How long a reader may take nothing of an answer that waits for it, in milliseconds. */
export const STALLED_MS = 30_000

const HOLD = Symbol('request hold')

/** On the response itself, so that one listener serves all requests. */
interface HeldResponse extends ServerResponse {
  [HOLD]?: RequestHold
}

function closed(this: HeldResponse): void {
  this[HOLD]?.release()
}

/** One HTTP request and the one answer to it. Each surface adds its protocol's words. */
export abstract class HttpExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly startedAt = performance.now()
  protected readonly moreHeaders: OutgoingHttpHeaders | undefined
  #hold: RequestHold | undefined
  #stalledMs = STALLED_MS
  #answered = false

  /** @param moreHeaders Go into the answer beside its own, such as CORS headers that a host has set */
  constructor(request: IncomingMessage, response: ServerResponse, moreHeaders: OutgoingHttpHeaders | undefined) {
    this.request = request
    this.response = response
    this.moreHeaders = moreHeaders
  }

  /** Answers a request that is not admitted, or whose body is not taken. */
  abstract refuse(refusal: Refusal): void

  /** Answers with the surface's internal error. The cause is in the log. */
  abstract crash(cause: unknown): void

  /** Whether the client went away before it had its answer. */
  get abandoned(): boolean {
    return this.response.destroyed
  }

  /** Whether an answer was given or begun. */
  get answered(): boolean {
    return this.#answered
  }

  /** Seconds since the request's head arrived. */
  get seconds(): number {
    return (performance.now() - this.startedAt) / 1000
  }

  /** What the request holds of its caller's limits; undefined until it is admitted. */
  get hold(): RequestHold | undefined {
    return this.#hold
  }

  /**
   * Ties what the request holds to its response.
   * @param stalledMs How long a reader may take nothing of the answer, in milliseconds
   */
  admit(hold: RequestHold, stalledMs = STALLED_MS): void {
    this.#hold = hold
    this.#stalledMs = stalledMs
    const response: HeldResponse = this.response
    response[HOLD] = hold
    if (response.closed) hold.release()
    else response.on('close', closed)
  }

  /**
   * Keeps what the request holds beyond its response, for a connection that has become something else.
   * @returns what gives it back; call it once
   */
  outliveResponse(): () => void {
    this.response.off('close', closed)
    return () => this.#hold?.release()
  }

  /** Claims the one answer; false when there is one already. */
  protected begin(): boolean {
    if (this.#answered) return false
    this.#answered = true
    return true
  }

  /** Writes an answer that was {@link begin}ed, to a client that is there, and bounds how long it may wait to be taken. */
  protected send(status: number, headers: OutgoingHttpHeaders, text: string, unsettled?: Unsettled): void {
    headers['Content-Length'] = Buffer.byteLength(text)
    headers['X-Content-Type-Options'] = 'nosniff'
    this.response.writeHead(status, headers)
    this.sendLast(text, unsettled)
  }

  /** Ends an answer whose head is written. */
  protected sendLast(text: string, unsettled?: Unsettled): void {
    const { response } = this
    if (unsettled === undefined) response.end(text)
    else unsettled.settlements.deliver(response, text, unsettled.settlement)
    if (response.writableLength > 0) this.#watchReader()
  }

  /** Writes an answer that was {@link begin}ed, to a request whose body was perhaps not read. */
  protected sendRefusal(status: number, headers: OutgoingHttpHeaders, text: string): void {
    refuseBody(this.request, this.response, status, { ...headers, 'X-Content-Type-Options': 'nosniff' }, text)
  }

  /** Counts what the reader has not taken, and cuts off one that takes nothing for as long as it may. */
  #watchReader(): void {
    const { response } = this
    const hold = this.#hold
    let waiting = response.writableLength
    if (hold?.setUnread(waiting) === false) {
      response.destroy()
      return
    }
    const { socket } = this.request
    let queued = queuedBytes(socket)
    const timer = setInterval(() => {
      const left = response.writableLength
      const stillQueued = queuedBytes(socket)
      if (left >= waiting && stillQueued === queued) response.destroy()
      waiting = left
      queued = stillQueued
      hold?.setUnread(left)
    }, this.#stalledMs)
    timer.unref()
    response.once('close', () => clearInterval(timer))
  }
}

/**
 * Returns the bytes that the system has not taken of what is being written to a socket yet. An answer is one write, and counts as unwritten until its last byte is taken, so only this tells a slow
 * reader from one that takes nothing. Node's own time-out of sockets looks at the same number, but with TLS that of the
 * connection beneath is needed. Zero where a version of Node has neither.
 */
function queuedBytes(socket: Socket): number {
  const handle = memberOf(socket, '_handle')
  return sizeOf(handle) + sizeOf(memberOf(handle, '_parent'))
}

function sizeOf(handle: unknown): number {
  const size = memberOf(handle, 'writeQueueSize')
  return typeof size === 'number' ? size : 0
}

function memberOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined
}
