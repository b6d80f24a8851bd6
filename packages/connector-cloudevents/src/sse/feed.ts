import { Buffer } from 'node:buffer'

import type { SseStream } from '@signalbox/http-kit'

import { errorFrame, frameBytes } from './frames.ts'
import type { SseFrame } from './frames.ts'

/** Buffered bytes of a subscriber up to which an events store continues to read. */
const HIGH_WATER_BYTES = 65_536

/** The error of a delivery to a stream that has ended. */
class StreamOver extends Error {
  override readonly name = 'StreamOver'

  constructor() {
    super('the stream of the subscriber is over')
  }
}

interface FeedOptions {
  readonly flusher: Flusher
  /** Bytes that may wait for the subscriber. */
  readonly maxBytes: number
  /** Receives the number of frames that were dropped for a slow subscriber, when it has caught up or its stream ends. */
  readonly onDropped: (count: number) => void
  /** Receives the error that ended the feed. */
  readonly failed: (error: unknown) => void
}

/**
 * The bounded buffer between a subscription and its stream, written once in each event-loop tick. It accepts frames
 * before the stream is open, so that no message is lost between subscribing and answering.
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
  /** The frames that were never written, after the feed has ended. */
  #unwritten: ReadonlySet<SseFrame> = new Set()
  #refused = false
  #inFlight = 0
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

  /** Attaches the stream of the answer, and writes the waiting frames. */
  attach(stream: SseStream): void {
    if (this.#ended) return
    this.#stream = stream
    stream.onEnd(() => this.end())
    if (this.#inFlight > 0) this.#idleAgain = stream.keepBusy()
    this.#opened()
    this.#writeOn()
  }

  /**
   * Ends the feed: it accepts no more frames. Idempotent.
   * @param refused If `true`, the subscriber may not answer the requests that it received
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

  /** Calls the listener when the feed has ended. The returned function removes the listener. */
  onEnd(listener: () => void): () => void {
    this.#whenEnded.push(listener)
    return () => {
      const at = this.#whenEnded.indexOf(listener)
      if (at !== -1) this.#whenEnded.splice(at, 1)
    }
  }

  /** `true` if the subscriber may answer its requests after the feed has ended. */
  get answersWanted(): boolean {
    return !this.#refused
  }

  /** Returns `true` if the feed ended before it wrote the frame. */
  lost(frame: SseFrame): boolean {
    return this.#unwritten.has(frame)
  }

  /** Keeps the stream from ending as idle while a request is pending. Call the returned function once. */
  keepBusy(): () => void {
    if (this.#inFlight++ === 0) this.#idleAgain = this.#stream?.keepBusy()
    return () => {
      if (--this.#inFlight === 0) this.#idleAgain?.()
    }
  }

  /**
   * Adds the frame if it fits, and otherwise counts it as lost. Later frames are lost too, until the reader has
   * caught up and received the number of lost frames, so that it knows the position of the gap.
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

  /** Returns `true` if the frame fits into the buffer. */
  hasRoomFor(frame: SseFrame): boolean {
    if (this.#fits(frame)) return true
    this.flush()
    return this.#fits(frame)
  }

  #fits(frame: SseFrame): boolean {
    // A reader that is not behind gets one event of any size.
    if (this.#pendingBytes === 0 && this.#stream?.blocked !== true) return true
    return this.#pendingBytes + (this.#stream?.bufferedBytes ?? 0) + frameBytes(frame) <= this.#maxBytes
  }

  /**
   * Adds the frame even if it does not fit. Returns a promise if the producer should wait: it resolves when the
   * reader has caught up.
   * @throws StreamOver (or the promise rejects with it)
   */
  push(frame: SseFrame): Promise<void> | undefined {
    if (this.#ended) throw new StreamOver()
    this.#push(frame)
    return this.#pendingBytes < HIGH_WATER_BYTES && this.#stream?.blocked === false ? undefined : this.caughtUp()
  }

  /**
   * Adds the frame even if it does not fit. Resolves when the socket has accepted it and is writable again.
   * @throws StreamOver (the promise rejects with it)
   */
  async deliver(frame: SseFrame): Promise<void> {
    if (this.#ended) throw new StreamOver()
    this.#push(frame)
    await this.caughtUp()
  }

  /** Resolves when the socket has accepted all frames and is writable again. @throws StreamOver */
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
    for (const chunk of this.#flusher.join(frames, bytes)) this.#stream.writeText(chunk)
  }

  /** Ends the feed and its stream after an internal error. */
  fail(error: unknown): void {
    this.#failed(error)
    const stream = this.#stream
    this.end()
    stream?.end()
  }

  #push(frame: SseFrame): void {
    this.#pendingBytes += frameBytes(frame)
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

  /** Writes until the reader's buffer is full, and then reports the lost frames to the reader. */
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

interface Flushable {
  flush(): void
  /** Ends the feed after a failed flush. */
  fail(error: unknown): void
}

/**
 * Writes the frames that each feed gathered in one event-loop tick with one call: a call costs more than its content.
 * Feeds of one channel gather the same frames, so these are joined once for all feeds.
 */
export class Flusher {
  #waiting: Flushable[] = []
  #joined: readonly SseFrame[] = []
  #chunk = Buffer.alloc(0)

  /** Flushes the feed at the end of this event-loop tick. Call it once for each set of new frames. */
  schedule(feed: Flushable): void {
    if (this.#waiting.push(feed) === 1) setImmediate(() => this.flushAll())
  }

  flushAll(): void {
    const feeds = this.#waiting
    this.#waiting = []
    for (const feed of feeds) {
      try {
        feed.flush()
      } catch (error) {
        // No caller on the stack could catch the error.
        feed.fail(error)
      }
    }
    // Releases the joined frames.
    this.#joined = []
    this.#chunk = Buffer.alloc(0)
  }

  /** Returns the frames in as few chunks as possible. A long frame is not joined with others. */
  join(frames: readonly SseFrame[], bytes: number): readonly SseFrame[] {
    if (frames.length === 1) return frames
    const same = frames.length === this.#joined.length && frames.every((frame, i) => frame === this.#joined[i])
    if (!same) {
      const buffers = frames.filter((frame) => Buffer.isBuffer(frame))
      if (buffers.length < frames.length) return frames
      this.#joined = frames
      this.#chunk = Buffer.concat(buffers, bytes)
    }
    return [this.#chunk]
  }
}
