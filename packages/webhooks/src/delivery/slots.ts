interface Waiter {
  readonly start: () => void
}

/** A counting semaphore. Waiters are served in the order of their calls. */
class Semaphore {
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
  async acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.tryAcquire()) return
    await new Promise<void>((resolve, reject) => {
      const aborted = (): void => {
        this.#waiting.delete(waiter)
        reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      const waiter: Waiter = {
        start: () => {
          signal.removeEventListener('abort', aborted)
          resolve()
        },
      }
      this.#waiting.add(waiter)
      signal.addEventListener('abort', aborted, { once: true })
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

/** The attempts in flight of a node: limited for each endpoint and in all. */
export class Slots {
  readonly #ofEndpoint: number
  readonly #node: Semaphore
  readonly #endpoints = new Map<string, { readonly semaphore: Semaphore; users: number }>()

  constructor({ ofEndpoint, ofNode }: { readonly ofEndpoint: number; readonly ofNode: number }) {
    this.#ofEndpoint = ofEndpoint
    this.#node = new Semaphore(ofNode)
  }

  /** Runs an attempt when the endpoint and the node have a place for it. */
  async run<T>(endpoint: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const entry = this.#endpoints.get(endpoint) ?? { semaphore: new Semaphore(this.#ofEndpoint), users: 0 }
    this.#endpoints.set(endpoint, entry)
    entry.users++
    try {
      // The endpoint first: attempts that wait for a slow endpoint take no place of the node.
      if (!entry.semaphore.tryAcquire()) await entry.semaphore.acquire(signal)
      try {
        if (!this.#node.tryAcquire()) await this.#node.acquire(signal)
        try {
          return await work()
        } finally {
          this.#node.release()
        }
      } finally {
        entry.semaphore.release()
      }
    } finally {
      if (--entry.users === 0) this.#endpoints.delete(endpoint)
    }
  }
}
