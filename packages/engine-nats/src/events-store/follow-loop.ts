import type { OpenSubscription } from '@signalbox/broker-core/engine'
import { isBrokerError } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import { setTimeout as pause } from 'node:timers/promises'

import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'

const RETRY_MS = 200

/**
 * Repeats the steps of a subscription to an events store until it ends, and wakes a waiting step when the
 * channel changes.
 */
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

  /** Resolves when the channel is created, deleted or replaced, or the subscription ends. */
  get changed(): Promise<void> {
    return (this.#changed ??= Promise.withResolvers()).promise
  }

  /** @param failed Called after each failed step, before the pause. */
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
          // The connection reports its own loss.
          if (!isBrokerError(error, 'ENGINE_UNAVAILABLE'))
            settings.onProblem({
              kind: 'failed',
              message: `following an events store failed: ${messageOf(error)}`,
              error,
            })
          failed()
          await this.retryPause()
        }
      }
    } finally {
      stopListening()
    }
  }

  /** Waits until {@link changed}, or until the time is over. */
  async wait(milliseconds: number): Promise<void> {
    const late = new AbortController()
    const timer = pause(milliseconds, undefined, { signal: late.signal, ref: false }).catch(() => {})
    await Promise.race([this.changed, timer])
    late.abort()
  }

  /** Pauses before the servers are asked again. */
  retryPause(): Promise<void> {
    return this.wait(RETRY_MS)
  }

  #wake(): void {
    this.#changed?.resolve()
    this.#changed = undefined
  }
}
