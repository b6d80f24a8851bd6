import { setTimeout as delay } from 'node:timers/promises'

import type { Subscription } from '@signalbox/broker-core'

import { REOPEN_MS } from './limits.ts'

/**
 * Subscribes, and subscribes again after a pause when the subscription has ended or failed. Resolves when the signal
 * aborts. Never rejects.
 * @param failed Receives the errors of subscriptions
 */
export async function keepSubscribed(
  subscribe: () => Promise<Subscription>,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const error = await (await subscribe()).closed
      if (error !== undefined && !signal.aborted) failed(error)
    } catch (error) {
      if (!signal.aborted) failed(error)
    }
    await delay(REOPEN_MS, undefined, { signal, ref: false }).catch(() => {})
  }
}
