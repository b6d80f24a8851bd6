import { compile } from './compile.ts'
import { parse } from './parser.ts'
import type { CesqlError, CesqlRun, CesqlValue, ValueType } from './value.ts'

export interface CesqlResult {
  /** After an error: what CESQL says the expression gives then, such as the zero value of its type. */
  readonly value: CesqlValue
  readonly error?: CesqlError
}

/** An expression of the CloudEvents SQL Expression Language 1.0, ready to run any number of times. */
export interface CesqlExpression {
  /** What the expression gives. `any` for a bare attribute, whose type shows only with an event. */
  readonly type: ValueType | 'any'
  /**
   * Evaluates the expression for an event; `attribute` gives its attributes and extensions, undefined for one that it
   * does not have. Never throws, and ends at the first error (fail-fast mode of CESQL 4.1).
   */
  evaluate(attribute: (name: string) => CesqlValue | undefined): CesqlResult
}

/** Compiles an expression. @throws CesqlParseError */
export function compileCesql(expression: string): CesqlExpression {
  const { evaluate, type } = compile(parse(expression))
  return {
    type,
    evaluate: (attribute) => {
      const run: CesqlRun = { attribute, error: undefined }
      const value = evaluate(run)
      return run.error ? { value, error: run.error } : { value }
    },
  }
}
