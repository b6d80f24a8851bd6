import { pauseAfter } from '@signalbox/broker-core/internal'
import type { SourcedMessage, SourceSubscription, WebhookMessageSource } from '@signalbox/broker-core/ports'

import type { Item, Source } from './source.ts'

interface IterableSourceOptions {
  /** The number of the first message: messages are counted. */
  readonly next: number
  readonly signal: AbortSignal
  readonly failed: (error: unknown) => void
}

/** The messages of a connector's source, one at a time. It is opened again after an error. */
export class IterableSource implements Source {
  readonly #source: WebhookMessageSource
  readonly #options: IterableSourceOptions
  #subscription: SourceSubscription
  #messages: AsyncIterator<SourcedMessage> | undefined
  #next: number

  constructor(source: WebhookMessageSource, subscription: SourceSubscription, options: IterableSourceOptions) {
    this.#source = source
    this.#subscription = subscription
    this.#options = options
    this.#next = options.next
  }

  async take(): Promise<readonly Item[]> {
    const { failed, signal } = this.#options
    for (let failures = 0; ;) {
      signal.throwIfAborted()
      this.#messages ??= this.#source.open(this.#subscription, { signal, failed })[Symbol.asyncIterator]()
      try {
        const taken = await this.#messages.next()
        signal.throwIfAborted()
        if (taken.done === true) return []
        const { message, name, position } = taken.value
        this.#subscription = { ...this.#subscription, position }
        return [{ message, sequence: this.#next++, receipt: '', name, position }]
      } catch (error) {
        signal.throwIfAborted()
        failed(error)
        this.#messages = undefined
        await pauseAfter(++failures, { signal })
      }
    }
  }

  settle(): undefined {}

  async keep(): Promise<boolean> {
    return true
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    await this.#messages?.return?.().catch(() => {})
  }
}
