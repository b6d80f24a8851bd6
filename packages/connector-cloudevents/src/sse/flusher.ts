import { Buffer } from 'node:buffer'

import type { SseFrame } from './frames.ts'

export interface Flushable {
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
