/** A line of callers. */
interface Line {
  /** The places that its callers have. */
  held: number
  /** Calls that start a waiter. */
  readonly waiting: Set<() => void>
}

/** Options of {@link Semaphore}. */
export interface SemaphoreOptions {
  /** A line takes another place only while at least as many are free as it has: none is ever out of reach of a new line. */
  readonly leavesFree?: boolean
}

/**
 * A number of places. Callers wait for one in lines. The lines are served in rotation, so that a long line delays another
 * one by one caller. Within a line the order is that of the calls.
 */
export class Semaphore {
  #free: number
  readonly #leavesFree: boolean
  /** The lines whose callers have places, or wait for one. */
  readonly #lines = new Map<string, Line>()
  /** The lines with waiting callers, the next one first. */
  readonly #waiting = new Map<string, Line>()

  constructor(size: number, { leavesFree = false }: SemaphoreOptions = {}) {
    this.#free = size
    this.#leavesFree = leavesFree
  }

  /** Takes a place if the line may have one now. {@link release} must follow. */
  tryAcquire(name = ''): boolean {
    const line = this.#lines.get(name) ?? { held: 0, waiting: new Set() }
    if (!this.#hasPlace(line)) return false
    this.#lines.set(name, line)
    this.#take(line)
    return true
  }

  /**
   * Resolves when a place was taken: {@link release} must follow. Rejects with the signal's reason if it is aborted first.
   * @param name The line to wait in
   */
  async acquire(signal?: AbortSignal, name = ''): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire(name)) return
    const line = this.#lines.get(name) ?? { held: 0, waiting: new Set() }
    this.#lines.set(name, line)
    this.#waiting.set(name, line)
    await new Promise<void>((resolve, reject) => {
      const aborted = (): void => {
        line.waiting.delete(start)
        if (line.waiting.size === 0) this.#waiting.delete(name)
        this.#forgetIfEmpty(name, line)
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      const start = (): void => {
        signal?.removeEventListener('abort', aborted)
        resolve()
      }
      line.waiting.add(start)
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  /** Returns a place that the line has. */
  release(name = ''): void {
    const line = this.#lines.get(name)
    if (line === undefined || line.held === 0) throw new RangeError('a place that was not taken is released')
    line.held--
    this.#free++
    this.#forgetIfEmpty(name, line)
    this.#startWaiting()
  }

  #startWaiting(): void {
    // A map visits an entry that was removed and added again once more: after the others.
    for (const [name, line] of this.#waiting) {
      if (this.#free === 0) return
      const [start] = line.waiting
      if (start === undefined || !this.#hasPlace(line)) continue
      line.waiting.delete(start)
      this.#waiting.delete(name)
      if (line.waiting.size > 0) this.#waiting.set(name, line)
      this.#take(line)
      start()
    }
  }

  #hasPlace(line: Line): boolean {
    return this.#leavesFree ? line.held < this.#free : this.#free > 0
  }

  #take(line: Line): void {
    line.held++
    this.#free--
  }

  #forgetIfEmpty(name: string, line: Line): void {
    if (line.held === 0 && line.waiting.size === 0) this.#lines.delete(name)
  }
}
