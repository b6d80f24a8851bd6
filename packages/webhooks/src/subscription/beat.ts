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
