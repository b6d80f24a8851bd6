/** The three types of CESQL; integers are signed 32-bit numbers. */
export type CesqlValue = string | number | boolean

export type ValueType = 'string' | 'integer' | 'boolean'

/** The error types of CESQL that can arise while an expression runs. */
export type CesqlErrorKind = 'math' | 'cast' | 'missingAttribute' | 'functionEvaluation' | 'generic'

export interface CesqlError {
  readonly kind: CesqlErrorKind
  readonly message: string
}

/** The longest string that an attribute or a function may put into an evaluation, in UTF-16 units: it bounds the work. */
export const MAX_STRING_LENGTH = 65_536

/** One evaluation: the event it looks at, and the first error that it met. */
export interface CesqlRun {
  readonly attribute: (name: string) => CesqlValue | undefined
  error: CesqlError | undefined
}

/** Part of a compiled expression. Once `run.error` is set, what it returns is the zero value of its type. */
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

/** Notes the error and gives back the value that the failing operation is to have. */
export function fail<T extends CesqlValue>(run: CesqlRun, kind: CesqlErrorKind, message: string, value: T): T {
  run.error ??= { kind, message }
  return value
}
