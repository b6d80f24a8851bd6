import type { OpenSubscription } from '@signalbox/broker-core/engine'
import { isBrokerError } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import { setTimeout as pause } from 'node:timers/promises'

import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'

const RETRY_MS = 200

/** Repeats the steps of a subscription to an events store until it ends, and wakes what waits when the channel changes. */
export class FollowLoop {
  readonly #parts: Parts
  readonly #name: string
  readonly #subscription: OpenSubscription
  #changed: PromiseWithResolvers<void> | undefined

  constructor(parts: Parts, name: string, subscription: OpenSubscription) {
    this.#parts = parts
    this.#name = name
    this.#subscription = subscription
  }

  /** Resolves when the channel comes, goes or is another one, or the subscription ends. */
  get changed(): Promise<void> {
    return (this.#changed ??= Promise.withResolvers()).promise
  }

  /** `failed` is called after each step that failed, before the pause until the next. */
  async run(step: () => Promise<void>, failed: () => void = () => {}): Promise<void> {
    const { storedChannels, settings } = this.#parts
    const stopListening = storedChannels.onChange((type, name) => {
      if (type === 'events_store' && name === this.#name) this.#wake()
    })
    const woken = this.#subscription.closed.then(() => this.#wake())
    runInBackground(settings.onProblem, 'ending a subscription to an events store', woken)
    try {
      while (!this.#subscription.ended) {
        try {
          await step()
        } catch (error) {
          if (this.#subscription.ended) break
          // A lost connection is told by itself.
          if (!isBrokerError(error, 'ENGINE_UNAVAILABLE'))
            settings.onProblem({ kind: 'failed', message: `following an events store: ${messageOf(error)}`, error })
          failed()
          await this.retryPause()
        }
      }
    } finally {
      stopListening()
    }
  }

  /** Until {@link changed}, or the time is over. */
  async wait(milliseconds: number): Promise<void> {
    const late = new AbortController()
    const timer = pause(milliseconds, undefined, { signal: late.signal, ref: false }).catch(() => {})
    await Promise.race([this.changed, timer])
    late.abort()
  }

  /** Until the servers may be asked again. */
  retryPause(): Promise<void> {
    return this.wait(RETRY_MS)
  }

  #wake(): void {
    this.#changed?.resolve()
    this.#changed = undefined
  }
}
