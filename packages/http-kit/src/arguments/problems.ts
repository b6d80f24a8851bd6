import { shownText } from '@signalbox/broker-core/internal'
import type { TObject, TSchema } from 'typebox'
import { Check } from 'typebox/schema'

import { allowedBy, isOfType, refusal, takesText } from './allowed.ts'

/** One problem with the arguments of a call. */
export interface ArgumentProblem {
  /** The name of the argument; a dot leads into an object or array, as in `tags.priority`. */
  readonly argument: string
  /** The given value as JSON, shortened; absent if no value was given. */
  readonly given?: string
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

/** Returns the problems of one argument; for a map or an array of strings, one for each part that is not a string. */
function valueProblems(argument: string, schema: TSchema, value: unknown): readonly ArgumentProblem[] {
  if (Check(schema, value)) return []
  const parts = wrongParts(argument, schema, value)
  if (parts.length > 0) return parts
  const allowed = refusal(schema, value) ?? allowedBy(schema)
  return [{ argument, given: shownValue(value), allowed: takesText(schema) ? `${allowed}${asText(value)}` : allowed }]
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
