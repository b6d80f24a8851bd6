/** Resolves after `ms`, or at once when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve()
      return
    }
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** The longest time between two attempts, in ms. */
const MAX_BACKOFF_MS = 10_000

/**
 * Returns the time before the next attempt, in ms. It doubles with each attempt, and a random part of up to a half is
 * subtracted, so that many clients do not return at the same moment.
 */
export function backoff(attempt: number, atLeastMs = 0): number {
  const full = Math.min(MAX_BACKOFF_MS, 100 * 2 ** Math.min(attempt, 20))
  return Math.max(atLeastMs, full / 2 + Math.random() * (full / 2))
}
