import type { Static, TObject } from 'typebox'
import { Compile } from 'typebox/schema'

import type { ArgumentProblem } from './problems.ts'
import { argumentProblems } from './problems.ts'

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

export interface ArgumentsSource<Input extends TObject> {
  /** What the arguments belong to, such as `tool`. */
  readonly whose: string
  readonly input: Input
  readonly rule?: ArgumentRule<Static<Input>> | undefined
  /** Makes the error that is thrown for arguments with problems. */
  readonly refused: (problems: readonly ArgumentProblem[]) => Error
}

/**
 * Compiles the check of arguments (M7): nothing is coerced or filled in, and an optional argument that is null is left
 * out. The problems are gathered only when there are some.
 */
export function compileArguments<Input extends TObject>(
  source: ArgumentsSource<Input>,
): (args: unknown) => Static<Input> {
  const { whose, input, rule, refused } = source
  const validator = Compile(input)
  return (given) => {
    let args = given
    // Few clients write null, so nobody else pays for looking.
    if (!validator.Check(args)) args = withoutNulls(input, args)
    if (!validator.Check(args)) throw refused(argumentProblems(input, args, whose))
    const problem = rule?.(args)
    if (problem) throw refused([problem])
    return args
  }
}

/** Leaves out optional arguments that are null, which is how many clients write that there is none. */
function withoutNulls(input: TObject, args: unknown): unknown {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return args
  // TypeBox leaves the keyword out when nothing is required, whatever its type says.
  const required: readonly string[] = input.required ?? []
  const isLeftOut = (name: string, value: unknown): boolean =>
    value === null && Object.hasOwn(input.properties, name) && !required.includes(name)
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => !isLeftOut(name, value)))
}
