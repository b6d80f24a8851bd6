import { setTimeout as delay } from 'node:timers/promises'

import type { Subscription } from '../engine/subscription.ts'

/** The longest delay of a timer, in ms: almost 25 days. A timer with a longer one fires at once. */
export const MAX_TIMER_MS = 2_147_483_647

/** The pauses between attempts, in ms: the first one, doubled after each further failure up to the longest. */
export interface Backoff {
  readonly firstMs: number
  readonly longestMs: number
}

/** The pause of a follower: readers of durable data continue within about a second after an outage. */
const STEADY: Backoff = { firstMs: 1_000, longestMs: 1_000 }

export interface RetryOptions {
  /** Returns `true` for an error after which the next attempt may succeed. May report the error. */
  readonly mayRetry: (error: unknown) => boolean
  /** Ends the pause, and with it the attempts. @default never */
  readonly signal?: AbortSignal | undefined
}

/**
 * Calls `attempt` again after a pause, until it succeeds. The pause keeps the process alive.
 * @throws the last error, if it may not be retried or the signal was aborted
 */
export async function retry<T>(attempt: () => Promise<T>, { mayRetry, signal }: RetryOptions): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt()
    } catch (error) {
      if (signal?.aborted || !mayRetry(error)) throw error
      await pauseAfter(failures, { signal })
      if (signal?.aborted) throw error
    }
  }
}

export interface KeepSubscribedOptions {
  /** Ends the subscription permanently. */
  readonly signal: AbortSignal
  /**
   * Receives the errors of attempts and of subscriptions that ended.
   * @param failures The number of failures since the last successful attempt, from 1
   */
  readonly failed: (error: unknown, failures: number) => void
  /** @default one second */
  readonly backoff?: Backoff | undefined
}

/**
 * Subscribes, and subscribes again after a pause when the subscription has ended or failed. Resolves when the signal
 * is aborted and the subscription is closed: no delivery begins after that. Never rejects.
 */
export async function keepSubscribed(
  subscribe: () => Promise<Subscription>,
  { signal, failed, backoff }: KeepSubscribedOptions,
): Promise<void> {
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  let failures = 0
  let subscribed = false
  while (!signal.aborted) {
    try {
      const subscription = await subscribe()
      subscribed = true
      failures = 0
      const error = await Promise.race([subscription.closed, aborted])
      await subscription.close()
      failures++
      if (error !== undefined && !signal.aborted) failed(error, failures)
    } catch (error) {
      failures++
      if (!signal.aborted) failed(error, failures)
    }
    // The first subscription is part of a start, which an idle event loop must not end.
    await pauseAfter(failures, { signal, backoff, ref: !subscribed })
  }
}

interface PauseOptions {
  readonly signal?: AbortSignal | undefined
  readonly backoff?: Backoff | undefined
  /** `false` if the pause does not keep the process alive. @default true */
  readonly ref?: boolean
}

/** Waits before the next attempt; not longer than until the signal is aborted. Never rejects. */
export async function pauseAfter(
  failures: number,
  { signal, backoff: { firstMs, longestMs } = STEADY, ref = true }: PauseOptions,
): Promise<void> {
  const pauseMs = Math.min(firstMs * 2 ** Math.min(failures - 1, 20), longestMs)
  await delay(pauseMs, undefined, { ref, signal }).catch(() => {})
}
