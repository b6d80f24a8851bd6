import { shownText } from '../../text.ts'

/** A value of CESQL's three types; integers are signed 32-bit numbers. */
export type CesqlValue = string | number | boolean

export type ValueType = 'string' | 'integer' | 'boolean'

/** The error types of CESQL that can occur during evaluation. */
type CesqlErrorKind = 'math' | 'cast' | 'missingAttribute' | 'functionEvaluation' | 'generic'

export interface CesqlError {
  readonly kind: CesqlErrorKind
  readonly message: string
}

/**
 * The maximum length of a string from an attribute or a function, in UTF-16 units. It limits the work of an evaluation.
 */
export const MAX_STRING_LENGTH = 65_536

/**
 * The maximum number of steps of an evaluation: characters of attributes that are read and of texts that functions
 * return, and the work of LIKE. A step takes about 20 ns at most. Without the limit, an expression reads a long attribute
 * hundreds of times.
 */
const MAX_STEPS = 524_288

/** One evaluation: its event, its first error, and its steps so far. */
export interface CesqlRun {
  readonly attribute: (name: string) => CesqlValue | undefined
  error: CesqlError | undefined
  steps: number
}

/** Returns a new evaluation. */
export function newRun(attribute: CesqlRun['attribute']): CesqlRun {
  return { attribute, error: undefined, steps: 0 }
}

/** A part of a compiled expression. After `run.error` is set, it returns the zero value of its type. */
export type Evaluate = (run: CesqlRun) => CesqlValue

const MIN_INTEGER = -2_147_483_648
const MAX_INTEGER = 2_147_483_647

export function isInteger(value: number): boolean {
  return Number.isInteger(value) && value >= MIN_INTEGER && value <= MAX_INTEGER
}

export function typeOf(value: CesqlValue): ValueType {
  if (typeof value === 'string') return 'string'
  return typeof value === 'number' ? 'integer' : 'boolean'
}

/** Records the error, and returns the result of the failed operation. */
export function fail<T extends CesqlValue>(run: CesqlRun, kind: CesqlErrorKind, message: string, value: T): T {
  run.error ??= { kind, message }
  return value
}

/** Counts steps. After {@link MAX_STEPS} it records an error and returns false. */
export function takeSteps(run: CesqlRun, steps: number): boolean {
  run.steps += steps
  if (run.steps <= MAX_STEPS) return true
  const message = `the expression takes more than ${MAX_STEPS} steps for this event; shorten it or the attributes that it reads`
  return fail(run, 'generic', message, false)
}

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
