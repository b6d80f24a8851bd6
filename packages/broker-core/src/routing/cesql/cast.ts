import { shownText } from '../../text.ts'
import type { CesqlRun, CesqlValue } from './value.ts'
import { fail, isInteger } from './value.ts'

const INTEGER = /^[+-]?\d+$/

/**
 * Casts a value to an integer (CESQL 3.7). A value that cannot be cast causes a cast error and results in the zero
 * value.
 */
export function toInteger(run: CesqlRun, value: CesqlValue): number {
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  const number = INTEGER.test(value) ? Number(value) : Number.NaN
  // Adding 0 turns -0, the number of "-0", into 0.
  return isInteger(number) ? number + 0 : fail(run, 'cast', `${quote(value)} is not a 32-bit integer`, 0)
}

export function toBoolean(run: CesqlRun, value: CesqlValue): boolean {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') return value !== 0
  if (value.length <= 5) {
    const lower = value.toLowerCase()
    if (lower === 'true') return true
    if (lower === 'false') return false
  }
  return fail(run, 'cast', `${quote(value)} is neither true nor false`, false)
}

export function toText(value: CesqlValue): string {
  return String(value)
}

function quote(value: string): string {
  return shownText(value, 40)
}
