/** What waits for room in a {@link NodeBudget}. */
export interface BudgetWaiter {
  /** There may be room now. */
  roomInBudget(): void
}

/**
 * Bytes of all streams of the node that are on the way and not yet taken by their clients (A11). Each stream is bounded by
 * its window; this bounds their sum, and with it what slow clients can make the cluster hold. A stream that has nothing
 * on the way may always send a little, so that slow clients of one stream cannot stop another for good.
 */
export class NodeBudget {
  readonly #limitBytes: number
  readonly #waiting = new Set<BudgetWaiter>()
  #usedBytes = 0
  #waking = false

  /** @param limitBytes @default 67108864 */
  constructor(limitBytes = 67_108_864) {
    this.#limitBytes = limitBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** More than half of it is used: credit is wanted sooner. */
  get scarce(): boolean {
    return this.#usedBytes > this.#limitBytes / 2
  }

  hasRoom(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#limitBytes
  }

  take(bytes: number): void {
    this.#usedBytes += bytes
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes
    this.#wake()
  }

  /** Calls back once, when there may be room; in the order of asking. */
  wait(waiter: BudgetWaiter): void {
    this.#waiting.add(waiter)
  }

  stopWaiting(waiter: BudgetWaiter): void {
    this.#waiting.delete(waiter)
  }

  #wake(): void {
    // Whoever is woken may use room, and give some back, before this returns.
    if (this.#waking || this.#waiting.size === 0) return
    this.#waking = true
    // Each once: who finds too little room asks again, behind the others.
    const asked = this.#waiting.size
    let woken = 0
    for (const waiter of this.#waiting) {
      if (woken++ === asked || !this.hasRoom(1)) break
      this.#waiting.delete(waiter)
      waiter.roomInBudget()
    }
    this.#waking = false
  }
}
