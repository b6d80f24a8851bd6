import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { Type } from 'typebox'
import type { Static, TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Check } from 'typebox/value'

import { TIMESTAMP_FORM } from './timestamp.ts'

/** One thing that is wrong with the arguments of a call; `data.problems` of the JSON-RPC error lists all of them. */
export interface ArgumentProblem {
  /** Its name; a dot leads into an object or array, as in `tags.priority`. */
  readonly argument: string
  /** What was given, as JSON, cut; absent when nothing was. */
  readonly given?: string
  readonly allowed: string
}

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

/** More of a value, or of the problems, helps nobody. */
const MAX_SHOWN = 64
const MAX_PROBLEMS = 20

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
    if (!validator.Check(args)) throw invalidArguments(tool, problemsOf(input, args))
    const problem = rule?.(args)
    if (problem) throw invalidArguments(tool, [problem])
    return args
  }
}

/** The JSON-RPC error for arguments that are not what they must be. */
export function invalidArguments(tool: string, problems: readonly ArgumentProblem[]): JsonRpcError {
  const texts = problems.map(({ argument, given, allowed }) =>
    given === undefined
      ? `${argument} is missing; it must be ${allowed}`
      : `${argument} is ${given}; it must be ${allowed}`,
  )
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${texts.join('. ')}`, {
    data: { problems },
  })
}

/** A given value for a person to recognise: short, and never the whole of something large. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? JSON.stringify(cut(value)) : String(value)
}

function cut(value: string): string {
  return value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value
}

function problemsOf(input: TObject, args: unknown): readonly ArgumentProblem[] {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return [{ argument: 'arguments', given: shown(args), allowed: 'an object' }]
  }
  const given = new Map<string, unknown>(Object.entries(args))
  // TypeBox leaves the keyword out when nothing is required, whatever its type says.
  const required: readonly string[] = input.required ?? []
  const names = Object.keys(input.properties)
  const problems = Object.entries(input.properties).flatMap(([argument, schema]) => {
    const value = given.get(argument)
    if (value !== undefined) return valueProblems(argument, schema, value)
    return required.includes(argument) ? [{ argument, allowed: allowedBy(schema) }] : []
  })
  const allowed = `one of the tool's own: ${names.join(', ')}`
  for (const argument of given.keys()) {
    if (problems.length >= MAX_PROBLEMS) break
    if (!names.includes(argument)) problems.push({ argument: name(argument), given: 'unknown', allowed })
  }
  return problems.slice(0, MAX_PROBLEMS)
}

/** What is wrong with one argument; of a map or a list of strings, which of its parts are none. */
function valueProblems(argument: string, schema: TSchema, value: unknown): readonly ArgumentProblem[] {
  if (Check(schema, value)) return []
  const parts = wrongParts(argument, schema, value)
  if (parts.length > 0) return parts
  return [{ argument, given: shown(value), allowed: refusal(schema, value) ?? allowedBy(schema) }]
}

/** By hand, because TypeBox's own list of errors takes half a minute over a list of five million numbers. */
function wrongParts(argument: string, schema: TSchema, value: unknown): readonly ArgumentProblem[] {
  if (typeof value !== 'object' || value === null || !isOfType(schema, value)) return []
  if (!Reflect.has(schema, 'items') && !Reflect.has(schema, 'additionalProperties')) return []
  const problems: ArgumentProblem[] = []
  for (const key in value) {
    if (problems.length >= MAX_PROBLEMS) break
    const part: unknown = Reflect.get(value, key)
    if (typeof part === 'string') continue
    problems.push({ argument: `${argument}.${name(key)}`, given: shown(part), allowed: 'a string' })
  }
  return problems
}

/** What a refinement says against a value of the right type. */
function refusal(schema: TSchema, value: unknown): string | undefined {
  if (!Type.IsRefine(schema) || !isOfType(schema, value)) return undefined
  return schema['~refine'].find(({ check }) => !check(value))?.error(value)
}

/** Whether a value is of the schema's type, as JSON counts types. */
function isOfType(schema: TSchema, value: unknown): boolean {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return type === Reflect.get(schema, 'type')
}

/** A caller's own key for a person to recognise: short, and on one line. */
function name(key: string): string {
  return /^[\w./-]{1,64}$/.test(key) ? key : shown(key)
}

/** What a schema allows, in words. */
function allowedBy(schema: TSchema): string {
  const keyword = (name: string): unknown => Reflect.get(schema, name)
  const values = keyword('enum')
  if (Array.isArray(values)) return `one of ${values.join(', ')}`
  switch (keyword('type')) {
    case 'boolean':
      return 'true or false'
    case 'array':
      return 'an array of strings'
    case 'object':
      return keyword('additionalProperties') === undefined ? 'an object' : 'an object whose values are strings'
    case 'integer': {
      const minimum = JSON.stringify(keyword('minimum'))
      const maximum = JSON.stringify(keyword('maximum'))
      return maximum === undefined
        ? `a whole number of at least ${minimum}`
        : `a whole number from ${minimum} to ${maximum}`
    }
    default:
      if (keyword('format') === 'date-time') return TIMESTAMP_FORM
      return keyword('minLength') === undefined ? 'a string' : 'a string that is not empty'
  }
}
