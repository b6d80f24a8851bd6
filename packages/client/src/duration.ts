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
