import { argumentProblems, JSON_RPC_CODES, JsonRpcError, problemsText } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'
import { Compile } from 'typebox/compile'

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

/**
 * The check of one tool's arguments (M7), compiled once: nothing is coerced, filled in or copied. The problems are gathered
 * only when there are some.
 */
export function compileArguments<Input extends TObject>(
  tool: string,
  input: Input,
  rule?: ArgumentRule<Static<Input>>,
): (args: unknown) => Static<Input> {
  const validator = Compile(input)
  return (given) => {
    const args = given === undefined ? {} : given
    if (!validator.Check(args)) throw invalidArguments(tool, argumentProblems(input, args, 'tool'))
    const problem = rule?.(args)
    if (problem) throw invalidArguments(tool, [problem])
    return args
  }
}

/** The JSON-RPC error for arguments that are not what they must be; `data.problems` lists all of them. */
function invalidArguments(tool: string, problems: readonly ArgumentProblem[]): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${problemsText(problems)}`, {
    data: { problems },
  })
}
