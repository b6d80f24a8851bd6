import type { Subscription } from '@signalbox/broker-core'

/** The time until the next attempt, in ms. It doubles from the first value to the last. */
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/** A subscription that is renewed when it fails or when the engine ends it, until it is closed. */
export class KeptSubscription {
  readonly #subscribe: () => Promise<Subscription>
  readonly #failed: (error: unknown) => void
  #current: Promise<void>
  #subscription: Subscription | undefined
  #retryMs = FIRST_RETRY_MS
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** @param failed Called for the first failure of a series */
  constructor(subscribe: () => Promise<Subscription>, failed: (error: unknown) => void) {
    this.#subscribe = subscribe
    this.#failed = failed
    this.#current = this.#open()
  }

  /** Closes the subscription. No delivery begins after the promise resolves. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#current
    await this.#subscription?.close()
  }

  async #open(): Promise<void> {
    try {
      const subscription = await this.#subscribe()
      this.#subscription = subscription
      this.#retryMs = FIRST_RETRY_MS
      subscription.closed.then((error) => this.#lost(error)).catch(this.#failed)
    } catch (error) {
      this.#lost(error)
    }
  }

  #lost(error: unknown): void {
    if (this.#closed) return
    this.#subscription = undefined
    if (this.#retryMs === FIRST_RETRY_MS) this.#failed(error)
    this.#timer = setTimeout(() => {
      this.#current = this.#open()
    }, this.#retryMs)
    this.#timer.unref()
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS)
  }
}
