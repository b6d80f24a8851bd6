/** A running subscription. */
export interface Subscription extends AsyncDisposable {
  /** Resolves when the subscription has ended: with an error when the engine ended it, otherwise with undefined. */
  readonly closed: Promise<Error | undefined>
  /** Ends the subscription. No delivery starts after the returned promise resolves. Idempotent. */
  close(): Promise<void>
}
