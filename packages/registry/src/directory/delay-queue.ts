/** Timers cannot run longer. */
const MAX_TIMER_MS = 2_147_483_647

/**
 * Tells which ids have not been touched for a fixed time. As the time is the same for all, the order of the last touches
 * is the order of their ends: touching costs the same however many there are, and there is one timer, for the oldest.
 */
export class DelayQueue {
  readonly #delayMs: number
  readonly #onDue: (ids: readonly string[]) => void
  /** Monotonic time of the last touch, oldest first. */
  readonly #touched = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** `onDue` gets all ids whose time is over; they are out of the queue then. */
  constructor(delayMs: number, onDue: (ids: readonly string[]) => void) {
    this.#delayMs = delayMs
    this.#onDue = onDue
  }

  /** Begins the id's time, anew where it runs already. */
  touch(id: string): void {
    this.#touched.delete(id)
    this.#touched.set(id, performance.now())
    this.#arm()
  }

  /** Begins everybody's time anew. */
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

  /** Touches leave a running timer alone: when it fires too early, it is set again. */
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
