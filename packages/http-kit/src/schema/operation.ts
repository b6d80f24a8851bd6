import type { Static, TObject, TProperties } from 'typebox'

import { compileArguments } from './compile-arguments.ts'
import type { ArgumentProblem, ArgumentRule } from './compile-arguments.ts'
import { compileQuery } from './compile-query.ts'
import type { ParameterProblem } from './compile-query.ts'

/** The declaration of an operation, whichever protocol calls it. Each surface adds its own members. */
export interface OperationSource<Input extends TObject, Output> {
  /** The name of a tool or an action, or the path of a route. */
  readonly name: string
  /** The effect: a sentence for the documentation. Models read that of a tool, so it also says when to use another one. */
  readonly summary: string
  /** The arguments, or the parameters of the query. The schema is the type, the check and the documentation. */
  readonly input: Input
  /** The answer, for the documentation. */
  readonly output: Output
  /** A rule over several members of the input. */
  readonly rule?: ArgumentRule<Static<Input>>
}

/** An operation whose input can be read. */
export interface Operation<Input extends TObject, Output, Given> extends Omit<OperationSource<Input, Output>, 'rule'> {
  /** Returns the input of a call. @throws the surface's error, with every problem of the input */
  read(given: Given): Static<Input>
}

/** The form in which the operations of a surface get their input. */
export interface InputForm<Given> {
  compile<Input extends TObject>(source: OperationSource<Input, unknown>): (given: Given) => Static<Input>
}

/** Makes an operation from its declaration. The first call compiles the schema. */
export function defineOperation<Input extends TObject, Output, Given>(
  form: InputForm<Given>,
  source: OperationSource<Input, Output>,
): Operation<Input, Output, Given> {
  const { name, summary, input, output } = source
  return { name, summary, input, output, read: form.compile(source) }
}

/**
 * Returns the form of operations that get their arguments as JSON.
 * @param whose The owner of the arguments, for error messages, such as `tool`
 * @param refused Makes the error for the arguments of an operation
 */
export function argumentsForm(
  whose: string,
  refused: (name: string, problems: readonly ArgumentProblem[]) => Error,
): InputForm<unknown> {
  return {
    compile: ({ name, input, rule }) =>
      compileArguments({ whose, input, rule, refused: (problems) => refused(name, problems) }),
  }
}

/**
 * Returns the form of operations that get their parameters in the query of a URL.
 * @param refused Makes the error for the query of an operation
 * @param ignored Parameters that are accepted and dropped, unless the schema has them. @default none
 */
export function queryForm(
  refused: (problems: readonly ParameterProblem[]) => Error,
  ignored: TProperties = {},
): InputForm<string> {
  return { compile: ({ input }) => compileQuery(input, refused, Object.keys(ignored)) }
}
