import { shownText } from '@signalbox/broker-core/internal'
import type { Static, TObject, TSchema } from 'typebox'
import { Check } from 'typebox/schema'

import { allowedBy, compileLater, problemsText, refusal } from './compile-arguments.ts'

/** One problem with the query of a request. */
export interface ParameterProblem {
  readonly parameter: string
  /** The given value, shortened; absent if no value was given. */
  readonly given?: string
  readonly allowed: string
}

/** The longest query that is cached, in characters. */
const MAX_KNOWN = 256

/** The value of a query parameter, parsed by its schema. */
type Value = string | number | boolean | readonly string[]

/**
 * Returns the reader of a route's query. The schema gives the type, the check and the documentation. The reader adds
 * no defaults. It converts text to a number or a boolean only if it is written as one.
 * @param refused Makes the error that the reader throws for a query that breaks the schema
 * @param ignored Parameters that are accepted and dropped, unless the schema has them
 */
export function compileQuery<Query extends TObject>(
  schema: Query,
  refused: (problems: readonly ParameterProblem[]) => Error,
  ignored: readonly string[] = [],
): (query: string) => Static<Query> {
  const validator = compileLater(schema)
  // Producers send the same query again and again.
  let known: { readonly query: string; readonly values: Static<Query> } | undefined
  return (query) => {
    if (known?.query === query) return known.values
    const values: Record<string, Value> = {}
    const problems: ParameterProblem[] = []
    for (const [name, text] of pairs(query, problems)) {
      const parameter = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
      if (parameter === undefined) {
        if (ignored.includes(name)) continue
        problems.push({ parameter: nameShown(name), given: 'unknown', allowed: names(schema) })
      } else add(values, name, text, parameter, problems)
    }
    if (problems.length === 0 && validator.Check(values)) {
      if (query.length <= MAX_KNOWN) known = { query, values }
      return values
    }
    throw refused([...problems, ...valueProblems(schema, values, problems)])
  }
}

/** Returns the problems as one text, each with the given and the allowed value. */
export function parameterProblemsText(problems: readonly ParameterProblem[]): string {
  return problemsText(problems.map(({ parameter, ...rest }) => ({ argument: parameter, ...rest })))
}

/** Shortens a parameter name from the caller for an error message, on one line. */
function nameShown(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : shownText(name)
}

function pairs(query: string, problems: ParameterProblem[]): readonly (readonly [name: string, value: string])[] {
  return query.split('&').flatMap((part) => {
    if (part === '') return []
    const at = part.indexOf('=')
    const name = decode(at === -1 ? part : part.slice(0, at), problems)
    const value = decode(at === -1 ? '' : part.slice(at + 1), problems)
    return name === undefined || value === undefined ? [] : [[name, value] as const]
  })
}

function decode(text: string, problems: ParameterProblem[]): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    problems.push({
      parameter: shownText(text),
      given: 'not percent-encoded UTF-8',
      allowed: 'percent-encoded, with %25 for a percent sign',
    })
    return undefined
  }
}

function add(
  values: Record<string, Value>,
  name: string,
  text: string,
  schema: TSchema,
  problems: ParameterProblem[],
): void {
  const before = Object.hasOwn(values, name) ? values[name] : undefined
  if (keyword(schema, 'type') === 'array') {
    values[name] = Array.isArray(before) ? [...before, text] : [text]
  } else if (before === undefined) {
    values[name] = readValue(text, keyword(schema, 'type'))
  } else {
    problems.push({ parameter: name, given: 'given more than once', allowed: `given once: ${parameterAllows(schema)}` })
  }
}

function readValue(text: string, type: unknown): Value {
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function valueProblems(
  schema: TObject,
  values: Readonly<Record<string, Value>>,
  before: readonly ParameterProblem[],
): readonly ParameterProblem[] {
  const required: readonly string[] = schema.required ?? []
  return Object.entries(schema.properties).flatMap(([parameter, property]) => {
    if (before.some((problem) => problem.parameter === parameter)) return []
    const value = values[parameter]
    if (value === undefined)
      return required.includes(parameter) ? [{ parameter, allowed: parameterAllows(property) }] : []
    const given = Array.isArray(value) ? `given ${value.length} times` : shownText(String(value))
    if (Check(property, value)) return []
    return [{ parameter, given, allowed: refusal(property, value) ?? parameterAllows(property) }]
  })
}

function names(schema: TObject): string {
  const known = Object.keys(schema.properties)
  return known.length === 0 ? 'left out: the route has no parameters' : `one of ${known.join(', ')}`
}

function keyword(schema: TSchema, name: string): unknown {
  return Reflect.get(schema, name)
}

/** Returns the allowed values in words. A parameter that may be repeated is an array. */
function parameterAllows(schema: TSchema): string {
  if (keyword(schema, 'type') !== 'array') return allowedBy(schema)
  return `given 1 to ${String(keyword(schema, 'maxItems'))} times, never empty`
}
