import { shownText } from '@signalbox/broker-core/internal'
import type { TObject, TSchema } from 'typebox'
import { Check } from 'typebox/schema'

import { allowedBy, isOfType, refusal } from './allowed.ts'

/** One thing that is wrong with the arguments of a call. */
export interface ArgumentProblem {
  /** Its name; a dot leads into an object or array, as in `tags.priority`. */
  readonly argument: string
  /** What was given, as JSON, cut; absent when nothing was. */
  readonly given?: string
  readonly allowed: string
}

/** More of them help nobody. */
const MAX_PROBLEMS = 20

/** The problems as one text: what is wrong and what is allowed, each. */
export function problemsText(problems: readonly ArgumentProblem[]): string {
  const texts = problems.map(({ argument, given, allowed }) =>
    given === undefined
      ? `${argument} is missing; it must be ${allowed}`
      : `${argument} is ${given}; it must be ${allowed}`,
  )
  return texts.join('. ')
}

/** A given value for a person to recognize: short, and never the whole of something large. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'string' ? shownText(value) : String(value)
}

/**
 * Says everything that is wrong with arguments that a schema refuses, one line for each; unknown ones are wrong.
 * @param whose What the arguments belong to, such as `tool`
 */
export function argumentProblems(input: TObject, args: unknown, whose: string): readonly ArgumentProblem[] {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return [{ argument: 'arguments', given: shownValue(args), allowed: 'an object' }]
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
  const allowed = `one of the ${whose}'s own: ${names.join(', ')}`
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
  return [{ argument, given: shownValue(value), allowed: refusal(schema, value) ?? allowedBy(schema) }]
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
    problems.push({ argument: `${argument}.${name(key)}`, given: shownValue(part), allowed: 'a string' })
  }
  return problems
}

/** A caller's own key for a person to recognize: short, and on one line. */
function name(key: string): string {
  return /^[\w./-]{1,64}$/.test(key) ? key : shownValue(key)
}
