import { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import type { RequestHold } from '../admission/request-hold.ts'
import { fairTurns } from './fair-turns.ts'
import type { HttpResponse } from './http-message.ts'
import { TextParts } from './text-parts.ts'

/** Headers of every event stream. */
export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // nginx buffers events without this header.
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
} as const

/** Interval between keepalive comments, in ms. */
export const SSE_KEEPALIVE_MS = 30_000

/** One server-sent event. */
export interface SseEvent {
  /** The `event:` line. Without it, readers use `message`. @default none */
  readonly event?: string
  /** The `id:` line. Contains no line end and no NUL. @default none */
  readonly id?: string
  readonly data: string
}

/** Options of {@link SseStream}. */
export interface SseOptions {
  /** Headers sent with status 200, in addition to {@link SSE_HEADERS}. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** Interval between keepalive comments, in ms; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /**
   * Time without an event after which the stream ends, in ms; 0 means never. Keepalive comments do not count as
   * events, and a busy stream ({@link SseStream.keepBusy}) does not end.
   * @default 0
   */
  readonly idleMs?: number
  /**
   * The time at which the stream ends, in ms since the epoch, such as the expiry of the caller's credentials.
   * @default never
   */
  readonly endsAt?: number | undefined
  /**
   * Bytes that may be buffered for a slow reader. Larger events are written in pieces of this size.
   * @default 1048576
   */
  readonly maxBufferedBytes?: number
  /**
   * Time that a slow reader has to read the buffered bytes, or one piece of a large event, in ms; 0 means no limit.
   * After it, the reader gets `slowConsumerEvent` and the stream ends.
   * @default 30000
   */
  readonly slowConsumerMs?: number
  /** The last event for a slow reader. @default the comment `slow consumer` */
  readonly slowConsumerEvent?: SseEvent
  /**
   * Time that the reader of an ended stream has to read the remaining bytes, in ms. Then the connection is closed.
   * @default 30000
   */
  readonly lingerMs?: number
  /**
   * Counts unread bytes for the caller. When the caller holds too many, the connection is closed.
   * @default unread bytes are not counted
   */
  readonly hold?: (Pick<RequestHold, 'setUnread'> & Partial<Pick<RequestHold, 'account'>>) | undefined
}

/** The reason for the end of a stream. */
export type SseEnd = 'ended' | 'idle' | 'expired' | 'slow' | 'disconnected'

const MAX_TIMER_MS = 2_147_483_647

/** A large event, of which some pieces are not written yet. */
interface LargeText {
  readonly pieces: Iterator<Uint8Array, void>
  /** `true` if each piece is work. */
  readonly isDear: boolean
  /** The bytes in memory that count as unread. */
  left: number
}

function* piecesOf(parts: readonly Uint8Array[], size: number): Generator<Uint8Array, void> {
  for (const bytes of parts) {
    for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
  }
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === 'string' ? Buffer.from(text) : text
}

/**
 * A server-sent event stream over a Node response. It starts with a comment, so that the reader knows that the stream
 * is open. A comment every 30 s keeps proxies from closing it.
 */
export class SseStream {
  readonly #response: HttpResponse
  readonly #idleMs: number
  readonly #maxBufferedBytes: number
  readonly #slowConsumerMs: number
  readonly #lastWords: string
  readonly #lingerMs: number
  readonly #hold: SseOptions['hold']
  readonly #keepAlive: NodeJS.Timeout | undefined
  readonly #expiry: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  /** Number of {@link keepBusy} calls that have not ended. Above 0, the stream is not idle. */
  #underWay = 0
  #slow: NodeJS.Timeout | undefined
  /** Large events, and those after them, that are not written yet. */
  #large: LargeText[] = []
  /** The bytes in memory of these events. */
  #largeBytes = 0
  #isInTurn = false
  #endsAfterLarge = false
  /** Bytes that the producer buffers for the reader. */
  #waiting = 0
  #ended: SseEnd | undefined
  #whenEnded: ((reason: SseEnd) => void)[] = []
  #whenDrained: ((open: boolean) => void)[] = []

  constructor(response: HttpResponse, options: SseOptions = {}) {
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
        // A comment would only lengthen the buffer of a reader that does not read.
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
   * Sends an event. Returns `false` when the producer should wait for {@link drained} before the next event, or when
   * the stream is over. Ends the stream of a reader that is too far behind.
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

  /** `true` while written bytes are unread. A producer that can wait should wait for {@link drained}. */
  get blocked(): boolean {
    return this.#response.writableNeedDrain || this.#largeBytes > 0
  }

  /** Bytes that wait for the reader. */
  get bufferedBytes(): number {
    return this.#response.writableLength + this.#largeBytes
  }

  /**
   * Sends events in wire format ({@link eventText}), several in one write, for a producer that sends the same events
   * to many streams. The producer bounds its own buffer: this method never ends the stream of a slow reader. A text in
   * parts is written a piece at a time, {@link TextParts} in turns with other work.
   */
  writeText(text: string | Uint8Array | readonly Uint8Array[] | TextParts): boolean {
    if (this.#ended !== undefined) return false
    if (this.#idle !== undefined) this.#restartIdle()
    if (text instanceof TextParts) this.#addLarge({ pieces: text.pieces(), isDear: true, left: text.heldBytes })
    else if (typeof text !== 'string' && !(text instanceof Uint8Array)) this.#addParts(text)
    // A text never has fewer bytes than characters, so its length is a safe lower bound.
    else if (this.#largeBytes > 0 || text.length > this.#maxBufferedBytes) this.#addParts([bytesOf(text)])
    else if (this.#response.write(text)) return true
    this.#watchReader()
    return false
  }

  /** Sets the number of bytes that the producer buffers for the reader. They count as unread. */
  countWaiting(bytes: number): void {
    if (this.#waiting === bytes || this.#ended !== undefined) return
    this.#waiting = bytes
    this.#count()
  }

  /** Splits a large event, so that a reader that reads it slowly is not mistaken for one that does not read at all. */
  #addParts(parts: readonly Uint8Array[]): void {
    const left = parts.reduce((sum, { byteLength }) => sum + byteLength, 0)
    this.#addLarge({ pieces: piecesOf(parts, this.#maxBufferedBytes), isDear: false, left })
  }

  #addLarge(text: LargeText): void {
    this.#large.push(text)
    this.#largeBytes += text.left
    this.#writeOn()
  }

  /** Writes pieces until the reader's buffer is full. A piece that is made first waits for its turn. */
  #writeOn(): void {
    while (!this.#response.writableNeedDrain && !this.#isInTurn) {
      const [first] = this.#large
      if (first === undefined) return
      if (first.isDear) this.#writeInTurn(first)
      else this.#writePiece(first)
    }
  }

  #writeInTurn(text: LargeText): void {
    this.#isInTurn = true
    const write = (): void => {
      this.#isInTurn = false
      if (this.#response.destroyed || this.#large[0] !== text) return
      this.#writePiece(text)
      if (!this.#response.writableNeedDrain) this.#taken()
    }
    fairTurns.turn(this.#hold?.account?.key ?? '', write).catch(() => this.#cutOff())
  }

  #writePiece(text: LargeText): void {
    const { done = false, value } = text.pieces.next()
    if (value !== undefined && value.byteLength > 0) this.#response.write(value)
    if (done) {
      this.#large.shift()
      this.#largeBytes -= text.left
    } else if (!text.isDear && value !== undefined) {
      text.left -= value.byteLength
      this.#largeBytes -= value.byteLength
    }
  }

  /** Runs when the reader has read all written bytes. */
  #taken(): void {
    clearTimeout(this.#slow)
    this.#slow = undefined
    if (this.#ended !== undefined) {
      if (this.#endsAfterLarge) this.#endResponse()
      return
    }
    this.#writeOn()
    if (this.blocked) this.#watchReader()
    else {
      this.#count()
      this.#drained(true)
    }
  }

  /** Starts the time-out within which the reader must read. */
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
    this.#addParts([Buffer.from(this.#lastWords)])
    this.#linger()
  }

  /** Writes the remaining pieces, so that a reader that reads in time gets everything, and ends the response. */
  #endResponse(): void {
    this.#flush(({ isDear }) => isDear)
    // Pieces that must be made are still made in turns.
    this.#endsAfterLarge = this.#large.length > 0
    if (this.#endsAfterLarge) this.#writeOn()
    else this.#response.end()
  }

  #flush(isLeft: (text: LargeText) => boolean): void {
    for (let [first] = this.#large; first !== undefined && !isLeft(first); [first] = this.#large)
      this.#writePiece(first)
  }

  #cutOff(): void {
    this.#over('slow')
    this.#response.destroy()
  }

  /** Keeps the stream from ending as idle until the returned function is called. */
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

  /** Resolves with `true` when the reader has caught up, or with `false` when the stream is over. */
  drained(): Promise<boolean> {
    if (this.#ended !== undefined) return Promise.resolve(false)
    if (!this.blocked) return Promise.resolve(true)
    return new Promise((resolve) => this.#whenDrained.push(resolve))
  }

  /** Ends the stream after the written events, and after `last` if given. The reader still receives them. */
  end(last?: SseEvent): void {
    // Not `write`: that would end the stream of a slow reader at once, without its time to read the rest.
    if (last !== undefined) this.writeText(eventText(last))
    this.#end('ended')
  }

  /** Detaches the stream from the response. The stream neither writes to it nor ends it after this call. */
  release(): void {
    this.#over('ended')
    this.#flush(() => false)
  }

  /** Calls the listener once when the stream is over, with the reason; at once if it is over already. */
  onEnd(listener: (reason: SseEnd) => void): void {
    if (this.#ended === undefined) this.#whenEnded.push(listener)
    else listener(this.#ended)
  }

  #end(reason: SseEnd): void {
    if (this.#ended !== undefined) return
    const stalled = reason !== 'ended' && this.blocked
    this.#over(reason)
    // A reader that does not read would never let the response finish.
    if (stalled) this.#response.destroy()
    else this.#linger()
  }

  /** Waits for the reader to read the written bytes, for at most `lingerMs`. */
  #linger(): void {
    const response = this.#response
    const cut = setTimeout(() => response.destroy(), this.#lingerMs)
    cut.unref()
    response.once('close', () => clearTimeout(cut))
    this.#endResponse()
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
 * Returns one event in wire format. Data of several lines becomes several `data:` lines.
 * @throws TypeError for a line end in `event` or `id`, or a NUL in `id`
 */
export function eventText({ event, id, data }: SseEvent): string {
  let text = ''
  if (event !== undefined) {
    if (LINE_END.test(event)) throw new TypeError('an SSE event name must not contain a line end')
    text += `event: ${event}\n`
  }
  if (id !== undefined) {
    if (LINE_END.test(id) || id.includes('\0')) throw new TypeError('an SSE id must not contain a line end or a NUL')
    text += `id: ${id}\n`
  }
  if (!LINE_END.test(data)) return `${text}data: ${data}\n\n`
  return `${text}${data
    .split(LINE_END)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`
}
