import { Buffer } from 'node:buffer'

import type { SseFrame } from './frames.ts'

export interface Flushable {
  flush(): void
  /** Ends it: it could not be flushed. */
  fail(error: unknown): void
}

/**
 * Lets every feed write what it gathered in one turn of the event loop at once: a write costs more than what is in it.
 * Feeds of one channel gather the same frames, so these are joined once for all of them.
 */
export class Flusher {
  #waiting: Flushable[] = []
  #joined: readonly SseFrame[] = []
  #chunk: SseFrame = Buffer.alloc(0)

  /** Flushes the feed at the end of this turn. Once for each time it has something new to flush. */
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
        // Nothing is above this in the stack that could take it.
        feed.fail(error)
      }
    }
    // Nothing is kept alive by having been joined.
    this.#joined = []
    this.#chunk = Buffer.alloc(0)
  }

  join(frames: readonly SseFrame[], bytes: number): SseFrame {
    const [only] = frames
    if (frames.length === 1 && only !== undefined) return only
    const same = frames.length === this.#joined.length && frames.every((frame, i) => frame === this.#joined[i])
    if (!same) {
      this.#joined = frames
      this.#chunk = Buffer.concat(frames, bytes)
    }
    return this.#chunk
  }
}
