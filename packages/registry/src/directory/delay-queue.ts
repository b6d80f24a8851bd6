/** The maximum delay of a timer. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Reports the ids that were not touched for a fixed time. The time is the same for all ids, so they become
 * due in the order of their last touches: a touch takes constant time, and one timer, for the oldest id, is
 * enough.
 */
export class DelayQueue {
  readonly #delayMs: number
  readonly #onDue: (ids: readonly string[]) => void
  /** The monotonic time of the last touch, oldest first. */
  readonly #touched = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** @param onDue Called with the ids that are due; the queue has already removed them. */
  constructor(delayMs: number, onDue: (ids: readonly string[]) => void) {
    this.#delayMs = delayMs
    this.#onDue = onDue
  }

  /** Starts or restarts the id's time. */
  touch(id: string): void {
    this.#touched.delete(id)
    this.#touched.set(id, performance.now())
    this.#arm()
  }

  /** Restarts the time of every id. */
  touchAll(): void {
    const now = performance.now()
    for (const id of this.#touched.keys()) this.#touched.set(id, now)
  }

  has(id: string): boolean {
    return this.#touched.has(id)
  }

  delete(id: string): void {
    this.#touched.delete(id)
  }

  close(): void {
    this.#closed = true
    this.#touched.clear()
    clearTimeout(this.#timer)
  }

  /** A touch does not reset a running timer: if the timer fires too early, it is set again. */
  #arm(): void {
    if (this.#timer !== undefined || this.#closed) return
    const oldest = this.#touched.values().next()
    if (oldest.done === true) return
    const wait = Math.min(Math.max(Math.ceil(oldest.value + this.#delayMs - performance.now()), 1), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#fire(), wait)
    this.#timer.unref()
  }

  #fire(): void {
    this.#timer = undefined
    const latest = performance.now() - this.#delayMs
    const due: string[] = []
    for (const [id, touchedAt] of this.#touched) {
      if (touchedAt > latest) break
      this.#touched.delete(id)
      due.push(id)
    }
    if (due.length > 0) this.#onDue(due)
    this.#arm()
  }
}
