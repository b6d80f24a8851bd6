import { argumentProblems, JSON_RPC_CODES, JsonRpcError, problemsText } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'
import { Compile } from 'typebox/compile'

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

/**
 * The check of one tool's arguments (M7), compiled once: nothing is coerced or filled in. The problems are gathered
 * only when there are some.
 */
export function compileArguments<Input extends TObject>(
  tool: string,
  input: Input,
  rule?: ArgumentRule<Static<Input>>,
): (args: unknown) => Static<Input> {
  const validator = Compile(input)
  return (given) => {
    let args: unknown = given === undefined ? {} : given
    // Few clients write null, so nobody else pays for looking.
    if (!validator.Check(args)) args = withoutNulls(input, args)
    if (!validator.Check(args)) throw invalidArguments(tool, argumentProblems(input, args, 'tool'))
    const problem = rule?.(args)
    if (problem) throw invalidArguments(tool, [problem])
    return args
  }
}

/** Leaves out optional arguments that are null, which is how many clients write that there is none (M7). */
function withoutNulls(input: TObject, args: unknown): unknown {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return args
  // TypeBox leaves the keyword out when nothing is required, whatever its type says.
  const required: readonly string[] = input.required ?? []
  const isLeftOut = (name: string, value: unknown): boolean =>
    value === null && Object.hasOwn(input.properties, name) && !required.includes(name)
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => !isLeftOut(name, value)))
}

/** The JSON-RPC error for arguments that are not what they must be; `data.problems` lists all of them. */
function invalidArguments(tool: string, problems: readonly ArgumentProblem[]): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${problemsText(problems)}`, {
    data: { problems },
  })
}
