import type { SseStream } from '@signalbox/http-kit'

import type { Flushable, Flusher } from './flusher.ts'
import type { SseFrame } from './frames.ts'
import { errorFrame } from './frames.ts'

/** An events store goes on reading for a subscriber that has less than this before it. */
const HIGH_WATER_BYTES = 65_536

/** Why a delivery could not be made: the subscriber's stream is over. */
class StreamOver extends Error {
  override readonly name = 'StreamOver'

  constructor() {
    super('the stream of the subscriber is over')
  }
}

export interface FeedOptions {
  readonly flusher: Flusher
  /** Bytes that may wait for the subscriber. */
  readonly maxBytes: number
  /** Called with the number of frames that a slow subscriber lost, each time it has caught up or gone. */
  readonly onDropped: (count: number) => void
  /** Called with what ended the feed, if that was a failure of ours. */
  readonly failed: (error: unknown) => void
}

/**
 * What lies between a subscription and its stream: a bounded buffer that is written once a turn. It takes frames before
 * the stream is open, so that nothing is missed between subscribing and answering.
 */
export class Feed implements Flushable {
  readonly #flusher: Flusher
  readonly #maxBytes: number
  readonly #onDropped: (count: number) => void
  readonly #failed: (error: unknown) => void
  #stream: SseStream | undefined
  #pending: SseFrame[] = []
  #pendingBytes = 0
  #dropped = 0
  #waitsForDrain = false
  #ended = false
  /** Once the feed has ended: what was never written. */
  #unwritten: ReadonlySet<SseFrame> = new Set()
  #refused = false
  #underWay = 0
  #idleAgain: (() => void) | undefined
  #whenEnded: (() => void)[] = []
  readonly #opened: () => void
  readonly #isOpen: Promise<void>

  constructor({ flusher, maxBytes, onDropped, failed }: FeedOptions) {
    this.#flusher = flusher
    this.#maxBytes = maxBytes
    this.#onDropped = onDropped
    this.#failed = failed
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#isOpen = promise
    this.#opened = resolve
  }

  get open(): boolean {
    return !this.#ended
  }

  /** The subscription was made and its answer begun: what has gathered is written. */
  attach(stream: SseStream): void {
    if (this.#ended) return
    this.#stream = stream
    stream.onEnd(() => this.end())
    if (this.#underWay > 0) this.#idleAgain = stream.keepBusy()
    this.#opened()
    this.#writeOn()
  }

  /**
   * Nothing is taken any more. Idempotent.
   * @param refused The subscriber may not answer what it has
   */
  end(refused = false): void {
    if (this.#ended) return
    this.#ended = true
    this.#unwritten = new Set(this.#pending)
    this.#refused = refused
    this.#pending = []
    this.#pendingBytes = 0
    this.#opened()
    if (this.#dropped > 0) this.#onDropped(this.#dropped)
    const listeners = this.#whenEnded
    this.#whenEnded = []
    for (const listener of listeners) listener()
  }

  /** Calls back when the feed has ended; the returned function takes that back. */
  onEnd(listener: () => void): () => void {
    this.#whenEnded.push(listener)
    return () => {
      const at = this.#whenEnded.indexOf(listener)
      if (at !== -1) this.#whenEnded.splice(at, 1)
    }
  }

  /** Whether the subscriber may still answer what it has, when the feed has ended. */
  get answersWanted(): boolean {
    return !this.#refused
  }

  /** Whether the feed ended before the frame was written. */
  lost(frame: SseFrame): boolean {
    return this.#unwritten.has(frame)
  }

  /** Keeps the stream from being idle until the returned function is called, once: a request is under way. */
  keepBusy(): () => void {
    if (this.#underWay++ === 0) this.#idleAgain = this.#stream?.keepBusy()
    return () => {
      if (--this.#underWay === 0) this.#idleAgain?.()
    }
  }

  /**
   * Takes the frame if there is room, otherwise counts it as lost; from then on every frame is lost until the reader has
   * caught up and was told how many, so that it knows where the gap is.
   */
  offer(frame: SseFrame): boolean {
    if (this.#ended) return false
    if (this.#dropped > 0 || !this.hasRoomFor(frame)) {
      this.#dropped++
      this.#awaitDrain()
      return false
    }
    this.#push(frame)
    return true
  }

  /** Whether the frame is within the bound. */
  hasRoomFor(frame: SseFrame): boolean {
    if (this.#fits(frame)) return true
    this.flush()
    return this.#fits(frame)
  }

  #fits(frame: SseFrame): boolean {
    // One event is taken whatever its size, from a reader that is not behind.
    if (this.#pendingBytes === 0 && this.#stream?.blocked !== true) return true
    return this.#pendingBytes + (this.#stream?.bufferedBytes ?? 0) + frame.byteLength <= this.#maxBytes
  }

  /**
   * Takes the frame in any case. The producer goes on at once where nothing is returned, otherwise when the promise has
   * resolved: the reader has then taken enough.
   * @throws StreamOver (or the promise rejects with it)
   */
  push(frame: SseFrame): Promise<void> | undefined {
    if (this.#ended) throw new StreamOver()
    this.#push(frame)
    return this.#pendingBytes < HIGH_WATER_BYTES && this.#stream?.blocked === false ? undefined : this.caughtUp()
  }

  /**
   * Takes the frame in any case; resolves when the socket has it and takes more.
   * @throws StreamOver (the promise rejects with it)
   */
  async deliver(frame: SseFrame): Promise<void> {
    if (this.#ended) throw new StreamOver()
    this.#push(frame)
    await this.caughtUp()
  }

  /** Resolves when all was handed to the socket and it takes more. @throws StreamOver */
  async caughtUp(): Promise<void> {
    await this.#isOpen
    for (;;) {
      this.flush()
      if (this.#stream === undefined || this.#ended) throw new StreamOver()
      if (!this.#stream.blocked) return
      await this.#stream.drained()
    }
  }

  flush(): void {
    const frames = this.#pending
    if (frames.length === 0 || this.#stream === undefined) return
    if (this.#stream.blocked) {
      this.#awaitDrain()
      return
    }
    const bytes = this.#pendingBytes
    this.#pending = []
    this.#pendingBytes = 0
    this.#stream.countWaiting(0)
    this.#stream.writeText(this.#flusher.join(frames, bytes))
  }

  /** Ends the feed, and its stream, for a failure of ours. */
  fail(error: unknown): void {
    this.#failed(error)
    const stream = this.#stream
    this.end()
    stream?.end()
  }

  #push(frame: SseFrame): void {
    this.#pendingBytes += frame.byteLength
    if (this.#pending.push(frame) === 1) this.#flusher.schedule(this)
    if (this.#stream?.blocked === true) this.#stream.countWaiting(this.#pendingBytes)
  }

  #awaitDrain(): void {
    if (this.#waitsForDrain || this.#stream === undefined) return
    this.#waitsForDrain = true
    this.#stream
      .drained()
      .then((open) => {
        this.#waitsForDrain = false
        if (open) this.#writeOn()
      })
      .catch((error: unknown) => this.fail(error))
  }

  /** Writes as far as the reader takes it, and then tells it what it lost. */
  #writeOn(): void {
    this.flush()
    if (this.#ended || this.#stream === undefined) return
    if (this.#stream.blocked) {
      if (this.#pending.length > 0 || this.#dropped > 0) this.#awaitDrain()
    } else if (this.#dropped > 0) {
      const count = this.#dropped
      this.#dropped = 0
      this.#onDropped(count)
      const message = `the subscriber was too slow: ${count} ${count === 1 ? 'event was' : 'events were'} left out here`
      this.#push(errorFrame('SLOW_SUBSCRIBER', message, { dropped: count }))
    }
  }
}
