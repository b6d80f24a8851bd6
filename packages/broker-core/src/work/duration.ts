import { BrokerError } from '../errors.ts'

/** A time: a number of milliseconds, or a text such as `250ms`, `5s`, `2m`, `1h`, `1d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]

/** Returns a duration in whole ms within a range. @throws BrokerError ARGUMENT_INVALID */
export function durationMs(argument: string, duration: Duration, min: number, max: number): number {
  const ms = Math.ceil(typeof duration === 'number' ? duration : textMs(duration))
  if (ms >= min && ms <= max) return ms
  const allowed = `${min} to ${max} ms as a number, or a text such as "250ms", "5s", "2m"`
  throw new BrokerError(
    'ARGUMENT_INVALID',
    `invalid argument ${argument}: ${JSON.stringify(duration)}; allowed is ${allowed}`,
    { argument, allowed },
  )
}

function textMs(text: unknown): number {
  if (typeof text !== 'string') return Number.NaN
  const unit = UNITS.find(([name]) => text.endsWith(name) && /^[0-9]+(?:\.[0-9]+)?$/.test(text.slice(0, -name.length)))
  return unit === undefined ? Number.NaN : Number(text.slice(0, -unit[0].length)) * unit[1]
}
