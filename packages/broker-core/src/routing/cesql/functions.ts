import type { CesqlRun, CesqlValue, ValueType } from './value.ts'
import { fail, MAX_STRING_LENGTH, newRun, toBoolean, toInteger } from './value.ts'

/** A built-in function (CESQL 3.5). Its arguments are cast to the types that it declares. */
export interface CesqlFunction {
  readonly parameters: readonly (ValueType | 'any')[]
  /** The number of required `parameters`. @default all */
  readonly required?: number
  /** The type of further arguments, of any number. */
  readonly rest?: ValueType
  readonly result: ValueType
  readonly call: (run: CesqlRun, args: readonly CesqlValue[]) => CesqlValue
}

export const FUNCTIONS: ReadonlyMap<string, CesqlFunction> = new Map<string, CesqlFunction>([
  ['LENGTH', { parameters: ['string'], result: 'integer', call: (_, [x]) => characters(x).length }],
  ['CONCAT', { parameters: [], rest: 'string', result: 'string', call: (run, args) => join(run, '', args) }],
  [
    'CONCAT_WS',
    {
      parameters: ['string'],
      rest: 'string',
      result: 'string',
      call: (run, [delimiter, ...args]) => join(run, text(delimiter), args),
    },
  ],
  ['LOWER', { parameters: ['string'], result: 'string', call: (_, [x]) => text(x).toLowerCase() }],
  ['UPPER', { parameters: ['string'], result: 'string', call: (_, [x]) => text(x).toUpperCase() }],
  ['TRIM', { parameters: ['string'], result: 'string', call: (_, [x]) => trim(text(x)) }],
  ['LEFT', { parameters: ['string', 'integer'], result: 'string', call: left }],
  ['RIGHT', { parameters: ['string', 'integer'], result: 'string', call: right }],
  ['SUBSTRING', { parameters: ['string', 'integer', 'integer'], required: 2, result: 'string', call: substring }],
  ['ABS', { parameters: ['integer'], result: 'integer', call: abs }],
  // These functions only cast, and the cast of the parameter does that.
  ['INT', { parameters: ['integer'], result: 'integer', call: (_, [x]) => number(x) }],
  ['BOOL', { parameters: ['boolean'], result: 'boolean', call: (_, [x]) => x === true }],
  ['STRING', { parameters: ['string'], result: 'string', call: (_, [x]) => text(x) }],
  ['IS_INT', { parameters: ['any'], result: 'boolean', call: (_, [x]) => casts(toInteger, x) }],
  ['IS_BOOL', { parameters: ['any'], result: 'boolean', call: (_, [x]) => casts(toBoolean, x) }],
])

function text(value: CesqlValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** The Unicode characters of a string, which CESQL counts, not UTF-16 units. */
interface Characters {
  readonly length: number
  slice(start: number, end?: number): string
}

const SURROGATE = /[\uD800-\uDFFF]/

function characters(value: CesqlValue | undefined): Characters {
  const units = text(value)
  // Every unit is a character then. An array of the characters would take a hundred times as long.
  if (!SURROGATE.test(units)) return units
  const each = Array.from(units)
  return { length: each.length, slice: (start, end) => each.slice(start, end).join('') }
}

function number(value: CesqlValue | undefined): number {
  return typeof value === 'number' ? value : 0
}

function join(run: CesqlRun, delimiter: string, parts: readonly CesqlValue[]): string {
  let length = 0
  for (const part of parts) length += text(part).length + delimiter.length
  return length > MAX_STRING_LENGTH
    ? fail(run, 'functionEvaluation', `a concatenation is longer than ${MAX_STRING_LENGTH} characters`, '')
    : parts.join(delimiter)
}

const BLANK = /^\p{White_Space}$/u

/**
 * Removes Unicode white space, which differs from the white space of `String.trim`. A regular expression would take
 * quadratic time.
 */
function trim(x: string): string {
  let start = 0
  let end = x.length
  while (start < end && BLANK.test(x.charAt(start))) start += 1
  while (end > start && BLANK.test(x.charAt(end - 1))) end -= 1
  return x.slice(start, end)
}

function left(run: CesqlRun, args: readonly CesqlValue[]): string {
  const count = number(args[1])
  if (count < 0) return fail(run, 'functionEvaluation', `LEFT cannot take ${count} characters`, text(args[0]))
  return characters(args[0]).slice(0, count)
}

function right(run: CesqlRun, args: readonly CesqlValue[]): string {
  const count = number(args[1])
  if (count < 0) return fail(run, 'functionEvaluation', `RIGHT cannot take ${count} characters`, text(args[0]))
  const chars = characters(args[0])
  return chars.slice(Math.max(0, chars.length - count))
}

function substring(run: CesqlRun, args: readonly CesqlValue[]): string {
  const chars = characters(args[0])
  const position = number(args[1])
  const length = args.length > 2 ? number(args[2]) : chars.length
  if (Math.abs(position) > chars.length) {
    return fail(run, 'functionEvaluation', `SUBSTRING cannot begin at ${position} of ${chars.length} characters`, '')
  }
  if (length < 0) return fail(run, 'functionEvaluation', `SUBSTRING cannot take ${length} characters`, '')
  if (position === 0) return ''
  const start = position > 0 ? position - 1 : chars.length + position
  return chars.slice(start, start + length)
}

function abs(run: CesqlRun, [x]: readonly CesqlValue[]): number {
  const value = Math.abs(number(x))
  const largest = 2_147_483_647
  return value > largest ? fail(run, 'math', `the absolute value of ${number(x)} is no 32-bit integer`, largest) : value
}

/** Returns whether a cast succeeds. */
function casts(cast: (run: CesqlRun, value: CesqlValue) => CesqlValue, value: CesqlValue | undefined): boolean {
  const trial = newRun(() => undefined)
  cast(trial, value ?? '')
  return trial.error === undefined
}
