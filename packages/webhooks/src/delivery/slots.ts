import { Semaphore } from '@signalbox/broker-core/internal'

/** The attempts to one endpoint, in flight or waiting. */
interface EndpointSlots {
  readonly semaphore: Semaphore
  users: number
}

/** The attempts in flight of a node: limited for each endpoint and in all. */
export class Slots {
  readonly #ofEndpoint: number
  readonly #node: Semaphore
  readonly #endpoints = new Map<string, EndpointSlots>()

  constructor({ ofEndpoint, ofNode }: { readonly ofEndpoint: number; readonly ofNode: number }) {
    this.#ofEndpoint = ofEndpoint
    this.#node = new Semaphore(ofNode)
  }

  /** Takes a place for an attempt if the endpoint and the node have one now. {@link release} must follow. */
  tryAcquire(endpoint: string): boolean {
    const entry = this.#enter(endpoint)
    if (entry.semaphore.tryAcquire()) {
      if (this.#node.tryAcquire()) return true
      entry.semaphore.release()
    }
    this.#leave(endpoint, entry)
    return false
  }

  /**
   * Takes a place for an attempt when the endpoint and the node have one. {@link release} must follow. Rejects with the
   * signal's reason if it is aborted first.
   */
  async acquire(endpoint: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const entry = this.#enter(endpoint)
    try {
      // The endpoint first: attempts that wait for a slow endpoint take no place of the node.
      await entry.semaphore.acquire(signal)
      try {
        await this.#node.acquire(signal)
      } catch (error) {
        entry.semaphore.release()
        throw error
      }
    } catch (error) {
      this.#leave(endpoint, entry)
      throw error
    }
  }

  /** Returns the place of an attempt. */
  release(endpoint: string): void {
    this.#node.release()
    const entry = this.#endpoints.get(endpoint)
    if (entry === undefined) return
    entry.semaphore.release()
    this.#leave(endpoint, entry)
  }

  #enter(endpoint: string): EndpointSlots {
    const entry = this.#endpoints.get(endpoint) ?? { semaphore: new Semaphore(this.#ofEndpoint), users: 0 }
    if (entry.users++ === 0) this.#endpoints.set(endpoint, entry)
    return entry
  }

  #leave(endpoint: string, entry: EndpointSlots): void {
    if (--entry.users === 0) this.#endpoints.delete(endpoint)
  }
}
