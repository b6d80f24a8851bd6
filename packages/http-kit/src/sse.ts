import { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { RequestHold } from './admission/request-hold.ts'

export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // nginx would hold events back.
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
} as const

/** Milliseconds between keepalive comments (specification, "Limits"). */
export const SSE_KEEPALIVE_MS = 30_000

export interface SseEvent {
  /** The `event:` line. @default none, which readers take as `message` */
  readonly event?: string
  /** The `id:` line. */
  readonly id?: string
  readonly data: string
}

export interface SseOptions {
  /** Sent with status 200, beside {@link SSE_HEADERS}. */
  readonly headers?: OutgoingHttpHeaders
  /** Milliseconds between keepalive comments; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /** The stream ends after this many milliseconds without an event, keepalives not counted, and with nothing under way; 0 is never. @default 0 */
  readonly idleMs?: number
  /** Ends the stream at this moment, milliseconds since the epoch (S9). @default never */
  readonly endsAt?: number
  /** Bytes that may wait for a slow reader: what is larger is written in pieces of so many. @default 1 MiB */
  readonly maxBufferedBytes?: number
  /**
   * Milliseconds that the reader has to take what waits, or a piece of it; then it gets `slow consumer`, and the stream
   * ends. 0 is no limit. @default 30000
   */
  readonly slowConsumerMs?: number
  /** The last event for a slow reader. @default the comment `slow consumer` */
  readonly slowConsumerEvent?: SseEvent
  /** Milliseconds that the reader of a stream that was ended has to take what was written; then it is cut off. @default 30000 */
  readonly lingerMs?: number
  /** Counts what the reader has not taken; a stream of a caller that holds too much is cut off. @default nothing is counted */
  readonly hold?: Pick<RequestHold, 'setUnread'>
}

/** Why a stream is over. */
export type SseEnd = 'ended' | 'idle' | 'expired' | 'slow' | 'disconnected'

const MAX_TIMER_MS = 2_147_483_647

/**
 * A server-sent event stream over a node response. It begins with a comment at once, so that the reader knows it is
 * open, and sends one every 30 s, so that nothing between closes it.
 */
export class SseStream {
  readonly #response: ServerResponse
  readonly #idleMs: number
  readonly #maxBufferedBytes: number
  readonly #slowConsumerMs: number
  readonly #lastWords: string
  readonly #lingerMs: number
  readonly #hold: Pick<RequestHold, 'setUnread'> | undefined
  readonly #keepAlive: NodeJS.Timeout | undefined
  readonly #expiry: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  /** What is under way on the stream, and keeps it from being idle. */
  #underWay = 0
  #slow: NodeJS.Timeout | undefined
  /** Pieces of a large event that wait for those before them. */
  #pieces: Uint8Array[] = []
  #piecesBytes = 0
  /** Bytes that the producer keeps for the reader. */
  #waiting = 0
  #ended: SseEnd | undefined
  #whenEnded: ((reason: SseEnd) => void)[] = []
  #whenDrained: ((open: boolean) => void)[] = []

  constructor(response: ServerResponse, options: SseOptions = {}) {
    this.#response = response
    this.#idleMs = options.idleMs ?? 0
    this.#maxBufferedBytes = options.maxBufferedBytes ?? 1_048_576
    this.#slowConsumerMs = options.slowConsumerMs ?? 30_000
    const { slowConsumerEvent } = options
    this.#lastWords = slowConsumerEvent === undefined ? ': slow consumer\n\n' : eventText(slowConsumerEvent)
    this.#lingerMs = options.lingerMs ?? 30_000
    this.#hold = options.hold
    response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
    response.on('drain', () => this.#taken())
    response.once('close', () => this.#over('disconnected'))
    response.on('error', () => this.#over('disconnected'))
    response.write(': open\n\n')
    const keepAliveMs = options.keepAliveMs ?? SSE_KEEPALIVE_MS
    if (keepAliveMs > 0) {
      this.#keepAlive = setInterval(() => {
        // A reader that takes nothing is not kept alive by more of it.
        if (!this.blocked) response.write(': keepalive\n\n')
      }, keepAliveMs)
      this.#keepAlive.unref()
    }
    if (options.endsAt !== undefined) {
      const left = Math.min(Math.max(options.endsAt - Date.now(), 0), MAX_TIMER_MS)
      this.#expiry = setTimeout(() => this.#end('expired'), left)
      this.#expiry.unref()
    }
    this.#restartIdle()
    if (response.destroyed) this.#over('disconnected')
  }

  get open(): boolean {
    return this.#ended === undefined
  }

  /**
   * Sends an event. False asks the producer to wait for {@link drained} before the next one. A stream that is over
   * takes nothing and says false, and one whose reader is too far behind is cut off.
   */
  write(event: SseEvent): boolean {
    if (this.#ended !== undefined) return false
    const text = eventText(event)
    const waiting = this.bufferedBytes
    if (waiting > 0 && waiting + text.length > this.#maxBufferedBytes) {
      this.#cutOff()
      return false
    }
    return this.writeText(text)
  }

  /** The reader has not yet taken what was written: a producer that can wait, waits for {@link drained}. */
  get blocked(): boolean {
    return this.#response.writableNeedDrain || this.#piecesBytes > 0
  }

  /** Bytes that wait for the reader. */
  get bufferedBytes(): number {
    return this.#response.writableLength + this.#piecesBytes
  }

  /**
   * Sends events that are on the wire form already ({@link eventText}), as many as one write holds: for a producer that
   * sends the same to many streams. It bounds its own buffer; nothing is cut off here.
   */
  writeText(text: string | Uint8Array): boolean {
    if (this.#ended !== undefined) return false
    if (this.#idle !== undefined) this.#restartIdle()
    // No text has fewer bytes than characters.
    if (this.#piecesBytes > 0 || text.length > this.#maxBufferedBytes) this.#writePieces(text)
    else if (this.#response.write(text)) return true
    this.#watchReader()
    return false
  }

  /** Tells how many bytes the producer keeps until the reader has caught up: they count as unread. */
  countWaiting(bytes: number): void {
    if (this.#waiting === bytes || this.#ended !== undefined) return
    this.#waiting = bytes
    this.#count()
  }

  /** So that a reader that takes a large event slowly is not taken for one that takes nothing. */
  #writePieces(text: string | Uint8Array): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    for (let at = 0; at < bytes.byteLength; at += this.#maxBufferedBytes) {
      this.#pieces.push(bytes.subarray(at, at + this.#maxBufferedBytes))
    }
    this.#piecesBytes += bytes.byteLength
    this.#writeOn()
  }

  /** Writes the pieces as far as the reader takes them. */
  #writeOn(): void {
    while (this.#pieces.length > 0 && !this.#response.writableNeedDrain) this.#writePiece()
  }

  #writePiece(): void {
    const piece = this.#pieces.shift()
    if (piece === undefined) return
    this.#piecesBytes -= piece.byteLength
    this.#response.write(piece)
  }

  /** The reader has taken all that was written. */
  #taken(): void {
    clearTimeout(this.#slow)
    this.#slow = undefined
    if (this.#ended !== undefined) return
    this.#writeOn()
    if (this.blocked) this.#watchReader()
    else {
      this.#count()
      this.#drained(true)
    }
  }

  /** Something waits for the reader: it has some time to take it. */
  #watchReader(): void {
    if (this.#slowConsumerMs > 0) {
      this.#slow ??= setTimeout(() => this.#tooSlow(), this.#slowConsumerMs).unref()
    }
    this.#count()
  }

  #count(): void {
    if (this.#hold?.setUnread(this.bufferedBytes + this.#waiting) === false) this.#cutOff()
  }

  #tooSlow(): void {
    if (this.#ended !== undefined) return
    this.#over('slow')
    this.#flushPieces()
    this.#response.write(this.#lastWords)
    this.#linger()
  }

  /** Writes what is left of a large event: the reader gets it whole, if it takes it in time. */
  #flushPieces(): void {
    while (this.#pieces.length > 0) this.#writePiece()
  }

  #cutOff(): void {
    this.#over('slow')
    this.#response.destroy()
  }

  /** Keeps the stream from being idle until the returned function is called: something on it is under way. */
  keepBusy(): () => void {
    this.#underWay++
    clearTimeout(this.#idle)
    this.#idle = undefined
    let over = false
    return () => {
      if (over) return
      over = true
      this.#underWay--
      if (this.#ended === undefined) this.#restartIdle()
    }
  }

  /** Resolves with true when the reader has caught up, with false when the stream is over. */
  drained(): Promise<boolean> {
    if (this.#ended !== undefined) return Promise.resolve(false)
    if (!this.blocked) return Promise.resolve(true)
    return new Promise((resolve) => this.#whenDrained.push(resolve))
  }

  /** Ends the stream politely, after a last event if one is given: what was written still reaches the reader. */
  end(last?: SseEvent): void {
    // Not `write`, which cuts off a reader that is far behind: it has time to take what there is.
    if (last !== undefined) this.writeText(eventText(last))
    this.#end('ended')
  }

  /** Gives the response back to whoever made the stream: nothing more is written to it or ended by the stream. */
  release(): void {
    this.#over('ended')
    this.#flushPieces()
  }

  /** Calls back once, with the reason, when the stream is over; at once when it is over already. */
  onEnd(listener: (reason: SseEnd) => void): void {
    if (this.#ended === undefined) this.#whenEnded.push(listener)
    else listener(this.#ended)
  }

  #end(reason: SseEnd): void {
    if (this.#ended !== undefined) return
    const stalled = reason !== 'ended' && this.blocked
    this.#over(reason)
    // A reader that takes nothing would never let the response come to its end.
    if (stalled) this.#response.destroy()
    else this.#linger()
  }

  /** Lets what was written reach the reader, and does not wait for one that takes nothing. */
  #linger(): void {
    const response = this.#response
    this.#flushPieces()
    const cut = setTimeout(() => response.destroy(), this.#lingerMs)
    cut.unref()
    response.once('close', () => clearTimeout(cut))
    response.end()
  }

  #over(reason: SseEnd): void {
    if (this.#ended !== undefined) return
    this.#ended = reason
    clearInterval(this.#keepAlive)
    clearTimeout(this.#expiry)
    clearTimeout(this.#idle)
    clearTimeout(this.#slow)
    this.#drained(false)
    const listeners = this.#whenEnded
    this.#whenEnded = []
    for (const listener of listeners) listener(reason)
  }

  #drained(open: boolean): void {
    const waiting = this.#whenDrained
    this.#whenDrained = []
    for (const resolve of waiting) resolve(open)
  }

  #restartIdle(): void {
    if (this.#idleMs <= 0 || this.#underWay > 0) return
    if (this.#idle !== undefined) {
      this.#idle.refresh()
      return
    }
    this.#idle = setTimeout(() => this.#end('idle'), this.#idleMs)
    this.#idle.unref()
  }
}

const LINE_END = /\r\n|\r|\n/

/**
 * One event as it goes over the wire. Data of several lines becomes several `data:` lines.
 * @throws TypeError for a line end in `event` or `id`, or a NUL in `id`
 */
export function eventText({ event, id, data }: SseEvent): string {
  let text = ''
  if (event !== undefined) {
    if (LINE_END.test(event)) throw new TypeError('an SSE event name holds no line end')
    text += `event: ${event}\n`
  }
  if (id !== undefined) {
    if (LINE_END.test(id) || id.includes('\0')) throw new TypeError('an SSE id holds no line end and no NUL')
    text += `id: ${id}\n`
  }
  if (!LINE_END.test(data)) return `${text}data: ${data}\n\n`
  return `${text}${data
    .split(LINE_END)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`
}
