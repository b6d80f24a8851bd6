import { shownText } from '@signalbox/broker-core/internal'
import { Type } from 'typebox'
import type { Static, TObject, TSchema } from 'typebox'
import { Check, Compile } from 'typebox/schema'
import type { Validator } from 'typebox/schema'

/** A rule over several arguments, such as two that exclude each other. */
export type ArgumentRule<Arguments> = (args: Arguments) => ArgumentProblem | undefined

interface ArgumentsSource<Input extends TObject> {
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

/** Drops optional arguments that are `null` and may not be: many clients send `null` for an absent argument. */
function withoutNulls(input: TObject, args: unknown): unknown {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return args
  // TypeBox omits the keyword if no property is required, although its type says otherwise.
  const required: readonly string[] = input.required ?? []
  const isLeftOut = (name: string, value: unknown): boolean => {
    const schema = Object.hasOwn(input.properties, name) ? input.properties[name] : undefined
    return value === null && schema !== undefined && !required.includes(name) && !Check(schema, value)
  }
  return Object.fromEntries(Object.entries(args).filter(([name, value]) => !isLeftOut(name, value)))
}

/** The compiled check of a schema. */
export interface CompiledCheck<Schema extends TSchema> {
  Check(value: unknown): value is Static<Schema>
}

/** Returns the check of a schema, which the first call compiles: a server defines some fifty at its start. */
export function compileLater<Schema extends TSchema>(schema: Schema): CompiledCheck<Schema> {
  let validator: Validator<Schema> | undefined
  return {
    Check(value): value is Static<Schema> {
      validator ??= Compile(schema)
      return validator.Check(value)
    },
  }
}

/** One problem with the arguments of a call. */
export interface ArgumentProblem {
  /** The name of the argument; a dot leads into an object or array, as in `tags.priority`. */
  readonly argument: string
  /** The given value as JSON, shortened; absent if no value was given. */
  readonly given?: string | undefined
  readonly allowed: string
}

/** The most problems that are reported. */
const MAX_PROBLEMS = 20

/** Returns the problems as one text, each with the given and the allowed value. */
export function problemsText(problems: readonly ArgumentProblem[]): string {
  const texts = problems.map(({ argument, given, allowed }) =>
    given === undefined
      ? `${argument} is missing; it must be ${allowed}`
      : `${argument} is ${given}; it must be ${allowed}`,
  )
  return texts.join('. ')
}

/** Returns a given value for an error message: short, and never a large value in full. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? shownText(value) : String(value)
}

/**
 * Returns every problem of arguments that a schema rejects, unknown arguments among them.
 * @param whose The owner of the arguments, for error messages, such as `tool`
 */
export function argumentProblems(input: TObject, args: unknown, whose: string): readonly ArgumentProblem[] {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return [{ argument: 'arguments', given: shownValue(args), allowed: 'an object' }]
  }
  const given = new Map<string, unknown>(Object.entries(args))
  // TypeBox omits the keyword if no property is required, although its type says otherwise.
  const required: readonly string[] = input.required ?? []
  const names = Object.keys(input.properties)
  const problems = Object.entries(input.properties).flatMap(([argument, schema]) => {
    const value = given.get(argument)
    if (value !== undefined) return valueProblems(argument, schema, value)
    return required.includes(argument) ? [{ argument, allowed: allowedBy(schema) }] : []
  })
  const allowed = `one of the ${whose}'s arguments: ${names.join(', ')}`
  for (const argument of given.keys()) {
    if (problems.length >= MAX_PROBLEMS) break
    if (!names.includes(argument)) problems.push({ argument: name(argument), given: 'unknown', allowed })
  }
  return problems.slice(0, MAX_PROBLEMS)
}

/** Returns the problems of one argument; for an object, a map or an array of strings, those of each part. */
function valueProblems(argument: string, schema: TSchema, value: unknown): readonly ArgumentProblem[] {
  if (Check(schema, value)) return []
  const nullable = nullableSchema(schema)
  if (nullable !== undefined) {
    return valueProblems(argument, nullable, value).map(({ argument: part, given, allowed }) => ({
      argument: part,
      given,
      allowed: part === argument ? `${allowed}, or null` : allowed,
    }))
  }
  if (Type.IsObject(schema) && isOfType(schema, value)) {
    const problems = argumentProblems(schema, value, argument)
    return problems.map(({ argument: part, given, allowed }) => ({ argument: `${argument}.${part}`, given, allowed }))
  }
  const parts = wrongParts(argument, schema, value)
  if (parts.length > 0) return parts
  const allowed = refusal(schema, value) ?? allowedBy(schema)
  return [{ argument, given: shownValue(value), allowed: takesText(schema) ? `${allowed}${asText(value)}` : allowed }]
}

/** Returns the other schema of a union with null. */
function nullableSchema(schema: TSchema): TSchema | undefined {
  if (!Type.IsUnion(schema) || schema.anyOf.length !== 2 || !schema.anyOf.some(Type.IsNull)) return undefined
  return schema.anyOf.find((each) => !Type.IsNull(each))
}

/** Written by hand: TypeBox's own error list takes half a minute for an array of five million numbers. */
function wrongParts(argument: string, schema: TSchema, value: unknown): readonly ArgumentProblem[] {
  if (typeof value !== 'object' || value === null || !isOfType(schema, value)) return []
  if (!Reflect.has(schema, 'items') && !Reflect.has(schema, 'additionalProperties')) return []
  const problems: ArgumentProblem[] = []
  for (const key in value) {
    if (problems.length >= MAX_PROBLEMS) break
    const part: unknown = Reflect.get(value, key)
    if (typeof part === 'string') continue
    problems.push({ argument: `${argument}.${name(key)}`, given: shownValue(part), allowed: `a string${asText(part)}` })
  }
  return problems
}

/** The most characters of a caller's value that are repeated as text. */
const MAX_EXAMPLE = 200

/** Returns how to send a value as text, for a caller that sent JSON; empty if the value is text already. */
function asText(value: unknown): string {
  if (typeof value === 'string' || value === null) return ''
  const json = shortJson(value)
  if (json === undefined) return ': send its JSON as text, in quotes and escaped'
  const text = shownText(json, MAX_EXAMPLE)
  return typeof value === 'object' ? `: send the JSON as text, ${text}` : `: send ${text}`
}

/** Returns a value as JSON; `undefined` if it is long. The work for a large value ends early. */
function shortJson(value: unknown): string | undefined {
  let left = MAX_EXAMPLE
  try {
    const json = JSON.stringify(value, (key, part: unknown) => {
      left -= key.length + (typeof part === 'string' ? part.length : 1)
      if (left < 0) throw new RangeError('the value is long')
      return part
    })
    return json.length > MAX_EXAMPLE ? undefined : json
  } catch {
    return undefined
  }
}

/** Shortens a key from the caller for an error message, on one line. */
function name(key: string): string {
  return /^[\w./-]{1,64}$/.test(key) ? key : shownValue(key)
}

/** Returns the values that a schema allows, in words. */
export function allowedBy(schema: TSchema): string {
  const keyword = (name: string): unknown => Reflect.get(schema, name)
  const values = keyword('enum')
  if (Array.isArray(values)) return `one of ${values.join(', ')}`
  switch (keyword('type')) {
    case 'boolean':
      return 'true or false'
    case 'array':
      return 'an array of strings'
    case 'object': {
      if (keyword('properties') !== undefined || keyword('additionalProperties') === undefined) return 'an object'
      const most = keyword('maxProperties')
      return `an object whose values are strings${typeof most === 'number' ? `, with at most ${most} keys` : ''}`
    }
    case 'number':
    case 'integer': {
      const kind = keyword('type') === 'number' ? 'number' : 'whole number'
      const minimum = JSON.stringify(keyword('minimum'))
      const maximum = JSON.stringify(keyword('maximum'))
      return maximum === undefined ? `a ${kind} of at least ${minimum}` : `a ${kind} from ${minimum} to ${maximum}`
    }
    default: {
      const most = keyword('maxLength')
      if (typeof most === 'number') return `a string of 1 to ${most} characters`
      return keyword('minLength') === undefined ? 'a string' : 'a string that is not empty'
    }
  }
}

/** Returns `true` if a schema allows any text, so that each value can be sent as text. */
function takesText(schema: TSchema): boolean {
  return Reflect.get(schema, 'type') === 'string' && !Reflect.has(schema, 'enum')
}

/** Returns the error of a refinement for a value of the right type. */
export function refusal(schema: TSchema, value: unknown): string | undefined {
  if (!Type.IsRefine(schema) || !isOfType(schema, value)) return undefined
  return schema['~refine'].find(({ check }) => !check(value))?.error(value)
}

/** Returns `true` if a value has the schema's JSON type. */
function isOfType(schema: TSchema, value: unknown): boolean {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return type === Reflect.get(schema, 'type')
}
