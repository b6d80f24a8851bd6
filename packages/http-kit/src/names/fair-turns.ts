/** The work of one account. */
interface Line {
  running: number
  readonly waiting: Set<() => void>
}

/**
 * Shares places for work among accounts. An account may run as much as there are free places, so it can never take the
 * last one from an account that has none. Accounts that wait are served in turn.
 */
export class FairTurns {
  #free: number
  readonly #lines = new Map<string, Line>()
  /** The accounts with waiting work; the next one first. */
  readonly #waiting = new Map<string, Line>()

  constructor(places: number) {
    this.#free = places
  }

  /**
   * Calls `start` when the account has a place, possibly before this returns.
   * @returns a function that releases the place, or stops waiting for it; call it once
   */
  enter(account: string, start: () => void): () => void {
    const line = this.#lines.get(account) ?? { running: 0, waiting: new Set() }
    this.#lines.set(account, line)
    line.waiting.add(start)
    this.#waiting.set(account, line)
    this.#startNext()
    return () => {
      if (!line.waiting.delete(start)) {
        line.running--
        this.#free++
      }
      if (line.waiting.size === 0) this.#waiting.delete(account)
      if (line.waiting.size === 0 && line.running === 0) this.#lines.delete(account)
      this.#startNext()
    }
  }

  #startNext(): void {
    // A map visits an entry that was removed and added again once more: after the others.
    for (const [account, line] of this.#waiting) {
      if (this.#free === 0) return
      const [start] = line.waiting
      if (start === undefined || line.running >= this.#free) continue
      line.waiting.delete(start)
      line.running++
      this.#free--
      this.#waiting.delete(account)
      if (line.waiting.size > 0) this.#waiting.set(account, line)
      start()
    }
  }
}
