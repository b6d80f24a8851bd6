/** A running subscription. */
export interface Subscription extends AsyncDisposable {
  /** Resolves when the subscription has ended: with an error when the engine ended it, otherwise with undefined. */
  readonly closed: Promise<Error | undefined>
  /** Ends the subscription. No delivery starts after the returned promise resolves. Idempotent. */
  close(): Promise<void>
}

/** A running subscription. It ends once: by its subscriber, by the signal, or by the engine. */
export class OpenSubscription implements Subscription {
  readonly closed: Promise<Error | undefined>
  readonly #resolve: (error: Error | undefined) => void
  readonly #onEnd: () => void
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.end()
  #ended = false

  /** @param onEnd Runs once, synchronously: no delivery starts after it */
  constructor(signal: AbortSignal | undefined, onEnd: () => void) {
    const { promise, resolve } = Promise.withResolvers<Error | undefined>()
    this.closed = promise
    this.#resolve = resolve
    this.#onEnd = onEnd
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort)
  }

  get ended(): boolean {
    return this.#ended
  }

  end(error?: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#onEnd()
    this.#resolve(error)
  }

  close(): Promise<void> {
    this.end()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
