import type { Subscription } from '@signalbox/broker-core'

/** How long until the next try, in milliseconds: doubled from the first to the last. */
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/** A subscription that is made again when it fails or the engine ends it, until it is closed. */
export class KeptSubscription {
  readonly #subscribe: () => Promise<Subscription>
  readonly #failed: (error: unknown) => void
  #current: Promise<void>
  #subscription: Subscription | undefined
  #retryMs = FIRST_RETRY_MS
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** `failed` is told of the first failure of a row. */
  constructor(subscribe: () => Promise<Subscription>, failed: (error: unknown) => void) {
    this.#subscribe = subscribe
    this.#failed = failed
    this.#current = this.#open()
  }

  /** No delivery begins after the returned promise resolves. Idempotent. */
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
