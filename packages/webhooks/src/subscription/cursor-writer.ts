import { isBrokerError } from '@signalbox/broker-core'
import { pauseAfter } from '@signalbox/broker-core/internal'

import { cursorKey } from './stored-subscriptions.ts'
import type { CursorRecord } from './subscription-record.ts'
import type { WebhookLog } from './webhook-log.ts'

/**
 * The longest pause after a write, in ms. A crash repeats the deliveries of this time; without the pause, writes cost more than
 * deliveries.
 */
export const PAUSE_MS = 100

/** The time after which a position is stored that moved without a delivery, in ms. */
const LAZY_MS = 1_000

interface CursorWriterOptions {
  readonly log: WebhookLog
  readonly id: string
  /** The sequence of the last entry of the position. */
  readonly sequence: number
  /** Returns the position to store. */
  readonly current: () => CursorRecord
  /** Called after each write. */
  readonly written: (cursor: CursorRecord, sequence: number) => void
  /** Called once if another node wrote: this node does not serve the subscription any more. */
  readonly lost: () => void
  readonly failed: (error: unknown) => void
  /** Ends the pause between two writes, for all subscriptions of the node at the same moment. */
  readonly beat: Beat
  readonly signal: AbortSignal
}

/** Stores the position of a subscription. Writes that are due during a write are stored together by the next one. */
export class CursorWriter {
  readonly #options: CursorWriterOptions
  #sequence: number
  #due = false
  #writing: Promise<void> | undefined
  #lazy: NodeJS.Timeout | undefined
  #lost = false
  #closing = false
  #wake: (() => void) | undefined

  constructor(options: CursorWriterOptions) {
    this.#options = options
    this.#sequence = options.sequence
  }

  /** Stores the position soon. */
  store(): void {
    this.#due = true
    this.#writing ??= this.#write()
  }

  /** Stores the position within a second. */
  storeLater(): void {
    this.#lazy ??= setTimeout(() => {
      this.#lazy = undefined
      this.store()
    }, LAZY_MS).unref()
  }

  /** Stores a position that is due, and ends. Never rejects. */
  async close(): Promise<void> {
    if (this.#lazy !== undefined) {
      clearTimeout(this.#lazy)
      this.#lazy = undefined
      this.store()
    }
    this.#closing = true
    this.#wake?.()
    await this.#writing
  }

  async #write(): Promise<void> {
    const { log, id, current, written, lost, failed, signal } = this.#options
    while (this.#due && !this.#lost) {
      this.#due = false
      const cursor = current()
      try {
        this.#sequence = await log.write(cursorKey(id), cursor, this.#sequence)
        written(cursor, this.#sequence)
        await this.#pause()
      } catch (error) {
        if (isBrokerError(error, 'CONFLICT')) {
          this.#lost = true
          lost()
        } else {
          failed(error)
          // A node that stops leaves the rest to the next one, which delivers again.
          if (signal.aborted) break
          this.#due = true
          await pauseAfter(1, { signal, ref: false })
        }
      }
    }
    this.#writing = undefined
  }

  /** Waits for the next beat; not while it is closing. */
  async #pause(): Promise<void> {
    if (this.#closing) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      this.#options.beat.add(resolve)
    })
    this.#wake = undefined
  }
}

/**
 * Wakes its waiters together, at most once in an interval: the writes of many subscriptions then share a post to the
 * store and a commit, and one timer serves all of them.
 */
export class Beat {
  readonly #intervalMs: number
  readonly #waiting = new Set<() => void>()

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Calls `wake` at the next beat. The timer does not keep the process alive. */
  add(wake: () => void): void {
    const delayMs = this.#intervalMs - (performance.now() % this.#intervalMs)
    if (this.#waiting.size === 0) setTimeout(() => this.#wakeAll(), delayMs).unref()
    this.#waiting.add(wake)
  }

  #wakeAll(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }
}
