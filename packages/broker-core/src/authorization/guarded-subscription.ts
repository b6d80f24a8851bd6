import type { Subscription } from '../engine/subscription.ts'
import type { BrokerError } from '../errors.ts'
import type { Authorization } from './authorization.ts'

/** A subscription that ends when a new policy no longer allows it: `closed` then resolves with the refusal. */
export class GuardedSubscription implements Subscription {
  readonly closed: Promise<Error | undefined>
  readonly #inner: Subscription
  #refusal: BrokerError | undefined

  /**
   * @param refused Returns the reason why it is not allowed now, or undefined if it is allowed
   * @param revoked Called when it ends for that reason
   */
  constructor(
    inner: Subscription,
    authorization: Authorization,
    refused: () => BrokerError | undefined,
    revoked: () => void,
  ) {
    this.#inner = inner
    const unwatch = authorization.watch({
      allowed: () => refused() === undefined,
      revoke: () => {
        this.#refusal = refused()
        revoked()
        // `closed` reports the result.
        inner.close().catch(() => {})
      },
    })
    this.closed = inner.closed.then((error) => {
      unwatch()
      return this.#refusal ?? error
    })
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
