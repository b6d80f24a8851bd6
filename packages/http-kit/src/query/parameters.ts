import { shownText } from '@signalbox/broker-core/internal'
import type { Static, TObject, TSchema } from 'typebox'
import { Check, Compile } from 'typebox/schema'

import { allowedBy, refusal } from '../arguments/allowed.ts'
import { problemsText } from '../arguments/problems.ts'

/** One thing that is wrong with the query of a request. */
export interface ParameterProblem {
  readonly parameter: string
  /** What was given, cut; absent when nothing was. */
  readonly given?: string
  readonly allowed: string
}

/** A longer query is not kept, in characters. */
const MAX_KNOWN = 256

/** What a query parameter says, read by its schema. */
type Value = string | number | boolean | readonly string[]

/**
 * The reader of one route's query: the schema gives the type, the check and the documentation. Nothing is filled in;
 * text becomes a number or a boolean only where it is written as one.
 * @param refused Makes the error that the reader throws for a query that breaks the schema
 * @param ignored Parameters that are taken and dropped, unless the schema has them
 */
export function compileQuery<Query extends TObject>(
  schema: Query,
  refused: (problems: readonly ParameterProblem[]) => Error,
  ignored: readonly string[] = [],
): (query: string) => Static<Query> {
  const validator = Compile(schema)
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

/** The problems as one text: what is wrong and what is allowed, each. */
export function parameterProblemsText(problems: readonly ParameterProblem[]): string {
  return problemsText(problems.map(({ parameter, ...rest }) => ({ argument: parameter, ...rest })))
}

/** A caller's own name for a person to recognize: short, and on one line. */
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
      allowed: 'percent-encoded, a percent sign as %25',
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
    problems.push({ parameter: name, given: 'there more than once', allowed: `given once: ${parameterAllows(schema)}` })
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
  return known.length === 0 ? 'left out: the route takes none' : `one of ${known.join(', ')}`
}

function keyword(schema: TSchema, name: string): unknown {
  return Reflect.get(schema, name)
}

/** What a parameter may be, in words: one that may be repeated is a list. */
function parameterAllows(schema: TSchema): string {
  if (keyword(schema, 'type') !== 'array') return allowedBy(schema)
  return `given 1 to ${String(keyword(schema, 'maxItems'))} times, never empty`
}
