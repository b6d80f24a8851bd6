interface Waiter {
  readonly start: () => void
}

/** A number of places. Those who wait for one get it in the order of their calls. */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<Waiter>()

  constructor(size: number) {
    this.#free = size
  }

  /** Takes a place if one is free. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  /** Resolves when a place was taken. Rejects with the signal's reason if it is aborted first. */
  async acquire(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryAcquire()) return
    await new Promise<void>((resolve, reject) => {
      const aborted = (): void => {
        this.#waiting.delete(waiter)
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      const waiter: Waiter = {
        start: () => {
          signal?.removeEventListener('abort', aborted)
          resolve()
        },
      }
      this.#waiting.add(waiter)
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next.start()
  }
}
