import { argumentError } from './errors.ts'

/** A time: a number of milliseconds, or a text such as `250ms`, `5s`, `2m`, `1h`, `1d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const ALLOWED = 'milliseconds as a number that is not negative, or a text such as "250ms", "5s", "2m", "1h"'

/**
 * Returns a duration in ms.
 * @throws SignalboxError ARGUMENT_INVALID
 */
export function milliseconds(name: string, duration: Duration): number {
  if (typeof duration === 'number') {
    if (Number.isFinite(duration) && duration >= 0) return duration
    throw argumentError(name, duration, ALLOWED)
  }
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration) ?? []
  const factor = UNITS[unit]
  if (factor === undefined) throw argumentError(name, duration, ALLOWED)
  return Number(digits) * factor
}

/**
 * Returns a duration in whole seconds, rounded up: the unit of the server.
 * @throws SignalboxError ARGUMENT_INVALID if it is out of range
 */
export function wholeSeconds(name: string, duration: Duration, min: number, max: number): number {
  const seconds = Math.ceil(milliseconds(name, duration) / 1000)
  if (seconds >= min && seconds <= max) return seconds
  throw argumentError(name, duration, `${min} to ${max} seconds`)
}

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
