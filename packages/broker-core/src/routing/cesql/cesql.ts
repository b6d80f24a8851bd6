import { compile } from './compile.ts'
import { parse } from './parser.ts'
import type { CesqlError, CesqlValue, ValueType } from './value.ts'
import { newRun } from './value.ts'

export interface CesqlResult {
  /** The result. After an error: the value that CESQL defines for it, such as the zero value of the type. */
  readonly value: CesqlValue
  readonly error?: CesqlError
}

/** A compiled expression of the CloudEvents SQL Expression Language 1.0, which can be evaluated any number of times. */
export interface CesqlExpression {
  /** The type of the result. `any` for a bare attribute, whose type depends on the event. */
  readonly type: ValueType | 'any'
  /**
   * Evaluates the expression for an event. `attribute` returns the event's attributes and extensions, or undefined for
   * a missing one. Never throws, and stops at the first error (fail-fast mode of CESQL 4.1).
   */
  evaluate(attribute: (name: string) => CesqlValue | undefined): CesqlResult
}

/** Compiles an expression. @throws CesqlParseError */
export function compileCesql(expression: string): CesqlExpression {
  const { evaluate, type } = compile(parse(expression))
  return {
    type,
    evaluate: (attribute) => {
      const run = newRun(attribute)
      const value = evaluate(run)
      return run.error ? { value, error: run.error } : { value }
    },
  }
}
