interface Waiter {
  readonly start: () => void
}

/**
 * A number of places. Callers wait for one in lines. The lines are served in rotation, so that a long line delays another
 * one by one caller. Within a line the order is that of the calls.
 */
export class Semaphore {
  #free: number
  /** The lines that are not empty, the next one first. */
  readonly #lines = new Map<string, Set<Waiter>>()

  constructor(size: number) {
    this.#free = size
  }

  /** Takes a place if one is free. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  /**
   * Resolves when a place was taken. Rejects with the signal's reason if it is aborted first.
   * @param line The line to wait in
   */
  async acquire(signal?: AbortSignal, line = ''): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire()) return
    await new Promise<void>((resolve, reject) => {
      const aborted = (): void => {
        waiting.delete(waiter)
        if (waiting.size === 0) this.#lines.delete(line)
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      const waiter: Waiter = {
        start: () => {
          signal?.removeEventListener('abort', aborted)
          resolve()
        },
      }
      const waiting = this.#lines.get(line) ?? new Set()
      this.#lines.set(line, waiting.add(waiter))
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  release(): void {
    const [turn] = this.#lines
    if (turn === undefined) {
      this.#free++
      return
    }
    const [line, waiting] = turn
    this.#lines.delete(line)
    const [next] = waiting
    if (next === undefined) throw new RangeError('an empty line waits')
    waiting.delete(next)
    if (waiting.size > 0) this.#lines.set(line, waiting)
    next.start()
  }
}
