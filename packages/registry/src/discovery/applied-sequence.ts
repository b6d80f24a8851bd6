/**
 * The maximum wait of a caller for its own entry: the entry is durable even if this node has not applied it
 * yet.
 */
const PATIENCE_MS = 5_000

interface Waiter {
  readonly sequence: number
  readonly resolve: () => void
}

/**
 * The last sequence of the discovery log that this node has applied. Lets a caller that wrote an entry read
 * its own write.
 */
export class AppliedSequence {
  /** Ordered by sequence. */
  #waiters: Waiter[] = []
  #sequence = 0

  /** Resolves when this node has applied the sequence, or after 5 s. */
  reached(sequence: number): Promise<void> {
    if (sequence <= this.#sequence) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
        resolve()
      }, PATIENCE_MS)
      timer.unref()
      const waiter: Waiter = {
        sequence,
        resolve() {
          clearTimeout(timer)
          resolve()
        },
      }
      const after = this.#waiters.findLastIndex((other) => other.sequence <= sequence)
      this.#waiters.splice(after + 1, 0, waiter)
    })
  }

  advance(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence)
    const waiting = this.#waiters.findIndex((waiter) => waiter.sequence > sequence)
    for (const { resolve } of this.#waiters.splice(0, waiting === -1 ? this.#waiters.length : waiting)) resolve()
  }

  close(): void {
    this.advance(Infinity)
  }
}
