import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { ByteBudget } from '@signalbox/http-kit'
import type { Steps } from '@signalbox/http-kit'
import { allSteps, fairTurns, LARGE_BODY_BYTES, ReadingTurns } from '@signalbox/http-kit/internal'

import type { ServerSentEvent } from './event-reader.ts'
import { CHUNK_BYTES, EventReader } from './event-reader.ts'
import type { ClientBytes, ClientText, EventConverter } from './events.ts'
import { busy, STREAM_FAILURES } from './failures.ts'
import type { StreamLimits } from './limits.ts'
import { EventBytes, resolveLimits } from './limits.ts'
import type { NodeBudget } from './link/node-budget.ts'
import type { SenderOwner, StreamSink } from './link/sender.ts'
import { LinkSender } from './link/sender.ts'
import { OwnEvents } from './own-events.ts'
import type { Timed } from './stream-timer.ts'
import { StreamTimer } from './stream-timer.ts'

export interface AgentStreamOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  /** The agent's response: status 2xx, with an unread body. */
  readonly response: AgentBody
  /** Converts the agent's events. @default to the gateway's own events */
  readonly converter?: EventConverter | undefined
  /** Returns the destination of the events. @default the link to the caller's node */
  readonly sink?: ((owner: SenderOwner) => StreamSink) | undefined
  readonly limits: StreamLimits
  /** The budget that all streams of the node share. */
  readonly budget: NodeBudget
  /** Counts the bytes of an event that is being read, or that waits for credit. @default no counting */
  readonly held?: ByteBudget | undefined
  /** The key of the caller's account, which takes turns with others for dear work. */
  readonly account: string
  /** Aborting it interrupts the stream. For the shutdown of the node. */
  readonly signal?: AbortSignal | undefined
}

/** An agent's response: it ends only when it is complete, and is destroyed when it was cut off. */
export interface AgentBody extends Readable {
  readonly headers: { readonly 'content-type'?: string | undefined }
}

/** The end of a stream on the agent's side. */
export interface AgentStreamEnd {
  /** True if the agent's response was aborted before its end: send `stream_cancel` to the agent. */
  readonly cancelled: boolean
}

/** The bytes of a plain answer that are copied at once. */
const PIECE_BYTES = 1_048_576

/** The bytes read between two checks of the credit. Tiny events grow in the caller's envelope. */
const SLICE_BYTES = 8_192

/** After its terminal event an agent has this much time, and this many bytes, to end its response. Then it is cut off. */
const LINGER_MS = 1_000
const LINGER_BYTES = 65_536
const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i

/** The states of a stream on the agent's side, in their order. The README of this folder draws them. */
type State =
  /** The link is being opened; nothing of the response was read. */
  | 'opening'
  | 'reading'
  /** Events wait for credit, and the agent's response is paused. */
  | 'paused'
  /** The terminal event was pushed; the agent may still end its response. */
  | 'lingering'
  /** The response is over; the caller has not read the last frame. */
  | 'delivering'
  | 'over'

/**
 * The agent's side of one stream: reads the agent's response as fast as its caller reads the events, and sends them over
 * the link. The last is one terminal event.
 */
export class AgentStream implements SenderOwner, Timed {
  readonly #response: AgentBody
  readonly #converter: EventConverter
  readonly #link: StreamSink
  readonly #timer: StreamTimer
  readonly #signal: AbortSignal | undefined
  readonly #held: EventBytes
  readonly #account: string
  readonly #turns: ReadingTurns
  #state: State = 'opening'
  /** Reads the body; dropped with its unread bytes once the response is over. */
  #reader: EventReader | PlainReader | undefined
  /** Bytes read from the socket that wait until the link accepts events. */
  #rest: Buffer | undefined
  #isFlushDue = false
  /** The end of the response, complete or broken off. Its last bytes may still wait in {@link #rest}. */
  #responseEnd: 'whole' | 'broken' | undefined
  /** Set by the agent's terminal event. */
  #linger: { readonly until: number; bytes: number } | undefined
  #cancelled = false
  readonly #ended = Promise.withResolvers<AgentStreamEnd>()
  readonly #onAbort = (): void => this.#contain(() => this.onCancel())

  constructor({
    system,
    streamId,
    response,
    converter,
    sink,
    limits,
    budget,
    held,
    account,
    signal,
  }: AgentStreamOptions) {
    const resolved = resolveLimits(limits)
    this.#response = response
    this.#converter = converter ?? new OwnEvents(streamId)
    this.#link = sink?.(this) ?? new LinkSender({ system, streamId, limits: resolved, budget, owner: this })
    this.#timer = StreamTimer.for(resolved)
    this.#signal = signal
    this.#account = account
    this.#turns = new ReadingTurns(account)
    this.#held = new EventBytes(held)
    this.#reader = EVENT_STREAM.test(response.headers['content-type'] ?? '')
      ? new EventReader(resolved.maxEventBytes, (event) => this.#onEvent(event))
      : new PlainReader(resolved.maxEventBytes)
  }

  /**
   * Relays the stream. Resolves when the caller has read all events, or when the stream was abandoned; the agent's
   * response has then ended or was aborted. Rejects only for a bug.
   */
  run(): Promise<AgentStreamEnd> {
    this.#response.on('error', () => {})
    this.#response.once('close', () => this.#contain(() => this.#responseOver('broken')))
    this.#timer.add(this)
    this.#signal?.addEventListener('abort', this.#onAbort)
    // Without a control channel there is no way to report the failure to the caller's node.
    this.#start().catch(() => this.#contain(() => this.onLost()))
    return this.#ended.promise
  }

  async #start(): Promise<void> {
    await this.#link.open()
    if (this.#signal?.aborted === true) this.onCancel()
    if (this.#state !== 'opening') return
    this.#state = 'reading'
    if (this.#response.destroyed) {
      this.#responseOver('broken')
      return
    }
    this.#response.once('end', () => this.#contain(() => this.#responseOver('whole')))
    this.#response.on('data', (chunk: Buffer) => this.#contain(() => this.#take(chunk)))
  }

  /** @inheritdoc */
  tick(now: number): void {
    if (this.#linger !== undefined && now >= this.#linger.until) this.#abort()
    if (this.#state === 'reading') {
      const text = this.#converter.quiet?.(now)
      if (text !== undefined) {
        this.#push(text)
        this.#link.flush()
        this.#pauseIfBlocked()
      }
    }
    this.#link.tick(now)
  }

  /** @inheritdoc Continues reading. */
  onRoom(): void {
    if (this.#state !== 'paused') return
    this.#state = 'reading'
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#read(rest)
    else this.#count()
    if (this.#rest === undefined) allSteps(this.#conclude())
    this.#resumeReading()
  }

  /** @inheritdoc */
  onDelivered(): void {
    if (this.#state === 'delivering') this.#end()
  }

  /** @inheritdoc Another caller than the stream's may have cancelled it; the stream's then needs a terminal event. */
  onCancel(): void {
    if (this.#state === 'over') return
    const { text, end = 'error' } = this.#converter.failure(STREAM_FAILURES.INTERRUPTED)
    this.#link.cutShort(text, end)
    this.onLost()
  }

  /** @inheritdoc Abandons the stream: no caller is left to read it. */
  onLost(): void {
    if (this.#state === 'over') return
    this.#link.close()
    this.#abort()
    this.#end()
  }

  /** @inheritdoc Rejects the promise for the end of the stream, and cuts off the agent's response. */
  crash(error: unknown): void {
    this.#ended.reject(error)
    try {
      this.onLost()
    } catch {
      this.#response.destroy()
    }
  }

  /** Reports errors of event listeners, which have no other handler. */
  #contain(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.crash(error)
    }
  }

  /** Compares the state where it may have changed since the last comparison. */
  #is(state: State): boolean {
    return this.#state === state
  }

  #take(chunk: Buffer): void {
    this.#link.heard()
    if (this.#state === 'reading') {
      this.#read(chunk)
      this.#readLarge(chunk.length)
    } else if (this.#linger !== undefined && (this.#linger.bytes += chunk.length) > LINGER_BYTES) this.#abort()
  }

  /** Takes turns with others for an event, or a plain answer, of megabytes. */
  #readLarge(bytes: number): void {
    if ((this.#reader?.pendingBytes ?? 0) <= LARGE_BODY_BYTES) this.#turns.restart()
    else if (this.#state === 'reading') {
      this.#turns.read(bytes, { pause: () => this.#response.pause(), resume: () => this.#resumeReading() })
    }
  }

  /** Not while events wait for credit: {@link onRoom} resumes then. */
  #resumeReading(): void {
    if (this.#state !== 'paused') this.#response.resume()
  }

  #read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.#state === 'reading'; at += SLICE_BYTES) {
      if (this.#link.blocked) {
        this.#rest = chunk.subarray(at)
        break
      }
      if (this.#reader?.feed(chunk.subarray(at, at + SLICE_BYTES)) === false) {
        this.#refuse(this.#converter.failure(STREAM_FAILURES.TOO_LARGE))
      } else this.#count()
    }
    this.#pauseIfBlocked()
    if (!this.#is('paused')) this.#flushSoon()
  }

  #onEvent(event: ServerSentEvent): void {
    if (this.#state !== 'reading') return
    const text = this.#responseEnd === undefined ? this.#converter.next(event) : this.#converter.cutOff(event)
    if (text === undefined) return
    if (typeof text.end === 'number') {
      this.#refuse(text)
      return
    }
    if (text.end !== undefined) this.#linger = { until: performance.now() + LINGER_MS, bytes: 0 }
    this.#push(text)
  }

  #push(events: ClientText | ClientBytes): void {
    const { end } = events
    if (end !== undefined) this.#state = 'lingering'
    if ('parts' in events) this.#link.pushLarge(events.parts, events.end)
    else this.#link.push(events.text, end)
  }

  /** Counts the bytes of the event that is being read, and of those that wait for credit. */
  #count(): void {
    if (this.#state !== 'reading') return
    const refusal = this.#held.set((this.#reader?.pendingBytes ?? 0) + this.#link.waitingBytes)
    if (refusal !== undefined) this.#refuse(this.#converter.failure(busy(refusal)))
  }

  /** Sends events that are read in one event-loop tick together. */
  #flushSoon(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    process.nextTick(() => {
      this.#isFlushDue = false
      this.#contain(() => {
        this.#link.flush()
        this.#pauseIfBlocked()
      })
    })
  }

  #pauseIfBlocked(): void {
    if (this.#state !== 'reading' || !this.#link.blocked) return
    this.#state = 'paused'
    this.#response.pause()
  }

  /** Ends the stream with an error of Signalbox, and aborts the response. */
  #refuse(failure: ClientText): void {
    if (this.#state !== 'reading') return
    this.#push(failure)
    this.#abort()
  }

  #responseOver(how: 'whole' | 'broken'): void {
    if (this.#responseEnd !== undefined || this.#state === 'delivering' || this.#state === 'over') return
    this.#responseEnd = how
    if (this.#rest !== undefined) return
    if ((this.#reader?.pendingBytes ?? 0) <= LARGE_BODY_BYTES) allSteps(this.#conclude())
    else fairTurns.steps(this.#account, this.#conclude()).catch((error: unknown) => this.crash(error))
  }

  /** Pushes the terminal event once the response is over and completely read, a piece of work at a time. */
  *#conclude(): Steps<void> {
    if (this.#responseEnd === undefined || this.#state === 'delivering' || this.#state === 'over') return
    if (this.#state !== 'lingering') {
      // Reads the last event, also of a response that ended while it was paused.
      this.#state = 'reading'
      if (this.#responseEnd === 'whole') yield* this.#readEnd()
      if (this.#state === 'reading') {
        this.#push(this.#responseEnd === 'whole' ? this.#converter.ended() : this.#converter.broken())
      }
    }
    this.#deliver()
  }

  *#readEnd(): Steps<void> {
    const reader = this.#reader
    if (reader instanceof EventReader) reader.end()
    else if (reader !== undefined) {
      const answer = yield* this.#converter.plainAnswer(yield* reader.body())
      // Meanwhile the stream may have been cancelled.
      if (this.#state === 'reading') this.#push(answer)
    }
  }

  /** Aborts the response, unless it is over. */
  #abort(): void {
    if (this.#state === 'delivering' || this.#state === 'over') return
    this.#cancelled = this.#responseEnd === undefined && this.#linger === undefined
    this.#rest = undefined
    this.#state = 'delivering'
    this.#response.destroy()
    this.#deliver()
  }

  /** Waits until the caller has read what was sent. */
  #deliver(): void {
    if (this.#state === 'over') return
    this.#state = 'delivering'
    this.#reader = undefined
    if (this.#link.delivered) this.#end()
  }

  #end(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#link.close()
    this.#timer.delete(this)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#ended.resolve({ cancelled: this.#cancelled })
  }
}

/** Reads a body that is no event stream. */
class PlainReader {
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** An estimate of the memory of the body, in bytes. */
  get pendingBytes(): number {
    return this.#bytes + CHUNK_BYTES * this.#chunks.length
  }

  /** Reads a chunk. Returns false once the body is larger than allowed. */
  feed(chunk: Buffer): boolean {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes <= this.#maxBytes
  }

  /** Returns the complete body. To copy megabytes into new memory takes many milliseconds, so it is done in pieces. */
  *body(): Steps<Buffer> {
    const body = Buffer.allocUnsafeSlow(this.#bytes)
    let at = 0
    let pauseAt = PIECE_BYTES
    for (const chunk of this.#chunks) {
      body.set(chunk, at)
      at += chunk.length
      if (at < pauseAt) continue
      pauseAt += PIECE_BYTES
      yield
    }
    return body
  }
}
