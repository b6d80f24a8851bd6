import { isBrokerError } from '@signalbox/broker-core/engine'

import type { Store } from '../store/store.ts'
import type { PlacedMessage } from '../writer/operations.ts'
import type { QueueReader } from './queue-reader.ts'

/** The longest wait while any message has a due time, in ms, so that a wall clock that was set forward is noticed. */
const LONGEST_SLEEP_MS = 250
/** The interval of the search for expired messages while any message has an expiry, in ms. */
const EXPIRY_SWEEP_MS = 1_000
/** The number of messages handled at once. */
const STEP = 500

interface QueueClockEvents {
  arrived(messages: readonly PlacedMessage[]): void
  /** Handles messages past their expiry, given by their channels' ids. Leased ones are not affected. */
  expired(messages: readonly { channel: number; sequence: number }[]): void
  /** Returns whether messages may expire by the maximum age of their queue. */
  mayAge(): boolean
  /** Ends the messages that expired by the maximum age of their queue. */
  aged(now: number): void
}

/**
 * The wall-clock tasks of queues: makes delayed messages deliverable when they are due, and removes expired ones. Due
 * times and expiries are wall-clock times, like timestamps, so that they have the same meaning after a restart. If the
 * clock is set back, they come later by the same amount.
 */
export class QueueClock {
  readonly #store: Store
  readonly #reader: QueueReader
  readonly #now: () => number
  readonly #events: QueueClockEvents
  #nextDue = Infinity
  #expiring = false
  #sweptAt = -Infinity
  #timer: NodeJS.Timeout | undefined
  #promoting: Promise<void> | undefined
  #closed = false

  constructor(store: Store, reader: QueueReader, now: () => number, events: QueueClockEvents) {
    this.#store = store
    this.#reader = reader
    this.#now = now
    this.#events = events
  }

  /** Reads the next due time and the expiries from the store. */
  start(): void {
    // An unreadable part of the store was reported; the other queues continue.
    this.#nextDue = orElse(Infinity, () => this.#reader.nextDue() ?? Infinity)
    this.#expiring = orElse(false, () => this.#reader.anyExpiring())
    this.#arm()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** Begins to look for messages that expire by the maximum age of their queue. */
  settingsChanged(): void {
    this.#arm()
  }

  get #sweeps(): boolean {
    return this.#expiring || this.#events.mayAge()
  }

  /** Records a message with a later due time or expiry. */
  note(dueAt: number, expiresAt: number): void {
    if (dueAt > 0) this.#nextDue = Math.min(this.#nextDue, dueAt)
    if (expiresAt > 0) this.#expiring = true
    if (dueAt > 0 || expiresAt > 0) this.#arm()
  }

  /**
   * Resolves when the messages that are due now are deliverable; undefined if there is nothing to wait for, the normal
   * case.
   */
  promoted(): Promise<void> | undefined {
    if (this.#promoting) return this.#promoting
    if (this.#nextDue > this.#now()) return undefined
    this.#promoting = this.#promote().finally(() => {
      this.#promoting = undefined
      this.#arm()
    })
    return this.#promoting
  }

  async #promote(): Promise<void> {
    for (let now = this.#now(); this.#nextDue <= now && !this.#closed; now = this.#now()) {
      // Sends during this operation may lower it again.
      this.#nextDue = Infinity
      try {
        await this.#store.submit('promote', { kind: 'promote', now, limit: STEP }, 0, ({ placed, nextDue }) => {
          this.#nextDue = Math.min(this.#nextDue, nextDue ?? Infinity)
          this.#events.arrived(placed)
        })
      } catch {
        // The disk is full or failing: the messages stay delayed, and the timer tries again.
        this.#nextDue = Math.min(this.#nextDue, now + LONGEST_SLEEP_MS)
        return
      }
    }
  }

  #arm(): void {
    if (this.#timer || this.#closed || (this.#nextDue === Infinity && !this.#sweeps)) return
    const wait = Math.min(Math.max(this.#nextDue - this.#now(), 1), LONGEST_SLEEP_MS)
    this.#timer = setTimeout(() => this.#tick(), wait).unref()
  }

  #tick(): void {
    this.#timer = undefined
    this.promoted()?.catch(() => {})
    if (this.#sweeps && performance.now() - this.#sweptAt >= EXPIRY_SWEEP_MS) {
      this.#sweptAt = performance.now()
      this.#sweep().catch(() => {})
    }
    if (!this.#promoting) this.#arm()
  }

  async #sweep(): Promise<void> {
    const now = this.#now()
    for (let skip = 0; !this.#closed; skip += STEP) {
      const expired = this.#reader.expired(now, STEP, skip)
      this.#events.expired(expired)
      if (expired.length < STEP) break
    }
    if (this.#events.mayAge()) this.#events.aged(now)
    await this.#store.submit('expireDelayed', { kind: 'expireDelayed', now, limit: STEP }, 0, ({ moved }) =>
      this.#events.arrived(moved),
    )
    this.#expiring = this.#reader.anyExpiring()
  }
}

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
    return otherwise
  }
}
