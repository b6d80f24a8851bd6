import { isBrokerError } from '@signalbox/broker-core/engine'

import type { Store } from '../store/store.ts'
import type { PlacedMessage } from '../writer/operations.ts'
import type { QueueReader } from './queue-reader.ts'

/** The longest sleep while something has a time, so that a wall clock set forward is noticed. */
const LONGEST_SLEEP_MS = 250
/** How often expired messages are looked for, while any message has an expiry. */
const EXPIRY_SWEEP_MS = 1_000
/** Messages handled in one step. */
const STEP = 500

export interface QueueClockEvents {
  arrived(messages: readonly PlacedMessage[]): void
  /** Messages past their expiry, by their channels' ids; those on lease are left alone. */
  expired(messages: readonly { channel: number; sequence: number }[]): void
}

/**
 * What queues do by the wall clock: delayed messages become deliverable when they are due, and expired ones are
 * removed. Due times and expiries are points in wall-clock time, like any timestamp, so that they mean the same after a
 * restart; setting the clock back prolongs them by as much.
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

  /** Finds out what the store has in wait. */
  start(): void {
    // Where it cannot be read, that was reported: the other queues go on.
    this.#nextDue = orElse(Infinity, () => this.#reader.nextDue() ?? Infinity)
    this.#expiring = orElse(false, () => this.#reader.anyExpiring())
    this.#arm()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** A message was sent that is due, or expires, later. */
  note(dueAt: number, expiresAt: number): void {
    if (dueAt > 0) this.#nextDue = Math.min(this.#nextDue, dueAt)
    if (expiresAt > 0) this.#expiring = true
    if (dueAt > 0 || expiresAt > 0) this.#arm()
  }

  /** Resolves when the messages that are due now can be had; undefined when there is nothing to wait for, as nearly always. */
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
      // Sends that are noted while this is under way lower it again.
      this.#nextDue = Infinity
      try {
        await this.#store.submit('promote', { kind: 'promote', now, limit: STEP }, 0, ({ placed, nextDue }) => {
          this.#nextDue = Math.min(this.#nextDue, nextDue ?? Infinity)
          this.#events.arrived(placed)
        })
      } catch {
        // A full or failing disk: they stay delayed, and are tried again by the timer.
        this.#nextDue = Math.min(this.#nextDue, now + LONGEST_SLEEP_MS)
        return
      }
    }
  }

  #arm(): void {
    if (this.#timer || this.#closed || (this.#nextDue === Infinity && !this.#expiring)) return
    const wait = Math.min(Math.max(this.#nextDue - this.#now(), 1), LONGEST_SLEEP_MS)
    this.#timer = setTimeout(() => this.#tick(), wait).unref()
  }

  #tick(): void {
    this.#timer = undefined
    this.promoted()?.catch(() => {})
    if (this.#expiring && performance.now() - this.#sweptAt >= EXPIRY_SWEEP_MS) {
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
    await this.#store.submit('expireDelayed', { kind: 'expireDelayed', now, limit: STEP }, 0, () => {})
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
