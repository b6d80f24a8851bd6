/** A stream that waits for space in a {@link NodeBudget}. */
export interface BudgetWaiter {
  /** Called when there may be space. */
  roomInBudget(): void
}

/**
 * Limits the bytes in transit of all streams that a node relays. Each stream is limited by its
 * window; the budget limits their sum, and with it the memory that slow clients can use in the
 * cluster. A stream with no frame in transit may always send a little, so slow clients cannot block
 * other streams.
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

  /** True if more than half of the budget is used: credit is wanted sooner. */
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

  /**
   * Calls `roomInBudget` once, when there may be space. Waiters are called in the order of their
   * calls.
   */
  wait(waiter: BudgetWaiter): void {
    this.#waiting.add(waiter)
  }

  stopWaiting(waiter: BudgetWaiter): void {
    this.#waiting.delete(waiter)
  }

  #wake(): void {
    // A woken stream may use space, and release some, before this returns.
    if (this.#waking || this.#waiting.size === 0) return
    this.#waking = true
    // Each waiter once: one that finds too little space waits again, behind the others.
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
