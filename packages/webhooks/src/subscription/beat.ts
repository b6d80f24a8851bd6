/**
 * Wakes its waiters together, at most once in an interval: the writes of many subscriptions then share a post to the
 * store and a commit, and one timer serves all of them.
 */
export class Beat {
  readonly #intervalMs: number
  readonly #waiting = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Calls `wake` at the next beat. The timer does not keep the process alive. */
  add(wake: () => void): void {
    this.#waiting.add(wake)
    this.#timer ??= setTimeout(() => this.#wakeAll(), this.#intervalMs - (performance.now() % this.#intervalMs)).unref()
  }

  #wakeAll(): void {
    this.#timer = undefined
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }
}
