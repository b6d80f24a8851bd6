import type { Static, TObject } from 'typebox'

import { compileLater } from './compile-later.ts'
import type { ArgumentProblem } from './problems.ts'
import { argumentProblems } from './problems.ts'

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

export interface ArgumentsSource<Input extends TObject> {
  /** The owner of the arguments, for error messages, such as `tool`. */
  readonly whose: string
  readonly input: Input
  readonly rule?: ArgumentRule<Static<Input>> | undefined
  /** Makes the error for invalid arguments. */
  readonly refused: (problems: readonly ArgumentProblem[]) => Error
}

/**
 * Returns the check of arguments, which its first call compiles. The check converts no values and adds no defaults; it
 * drops an optional argument that is `null`. Problems are collected only if the check fails.
 */
export function compileArguments<Input extends TObject>(
  source: ArgumentsSource<Input>,
): (args: unknown) => Static<Input> {
  const { whose, input, rule, refused } = source
  const validator = compileLater(input)
  return (given) => {
    let args = given
    // Few clients send null, so only a failed check looks for it.
    if (!validator.Check(args)) args = withoutNulls(input, args)
    if (!validator.Check(args)) throw refused(argumentProblems(input, args, whose))
    const problem = rule?.(args)
    if (problem) throw refused([problem])
    return args
  }
}

/** Drops optional arguments that are `null`: many clients send `null` for an absent argument. */
function withoutNulls(input: TObject, args: unknown): unknown {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return args
  // TypeBox omits the keyword if no property is required, although its type says otherwise.
  const required: readonly string[] = input.required ?? []
  const isLeftOut = (name: string, value: unknown): boolean =>
    value === null && Object.hasOwn(input.properties, name) && !required.includes(name)
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => !isLeftOut(name, value)))
}
