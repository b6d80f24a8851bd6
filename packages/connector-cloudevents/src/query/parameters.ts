import type { Static, TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Check } from 'typebox/value'

import { CeError } from '../errors.ts'

/** One thing that is wrong with the query of a request. */
export interface ParameterProblem {
  readonly parameter: string
  /** What was given, cut; absent when nothing was. */
  readonly given?: string
  readonly allowed: string
}

/** More of a value helps nobody. */
const MAX_SHOWN = 64

/** What a query parameter says, read by its schema. */
type Value = string | number | boolean | readonly string[]

/**
 * The reader of one route's query: the schema gives the type, the check and the documentation. Nothing is filled in;
 * text becomes a number or a boolean only where it is written as one.
 */
export function compileQuery<Query extends TObject>(schema: Query): (query: string) => Static<Query> {
  const validator = Compile(schema)
  return (query) => {
    const values: Record<string, Value> = {}
    const problems: ParameterProblem[] = []
    for (const [name, text] of pairs(query)) {
      const parameter = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
      if (parameter === undefined)
        problems.push({ parameter: nameShown(name), given: 'unknown', allowed: names(schema) })
      else add(values, name, text, parameter, problems)
    }
    if (problems.length === 0 && validator.Check(values)) return values
    throw invalidParameters([...problems, ...valueProblems(schema, values, problems)])
  }
}

/** The error for parameters that are not what they must be. */
export function invalidParameters(problems: readonly ParameterProblem[]): CeError {
  const texts = problems.map(({ parameter, given, allowed }) =>
    given === undefined
      ? `${parameter} is missing; it must be ${allowed}`
      : `${parameter} is ${given}; it must be ${allowed}`,
  )
  return new CeError('PARAMETER_INVALID', `invalid query parameters: ${texts.join('. ')}`, { problems })
}

/** A given value for a person to recognise. */
export function shown(value: string): string {
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value)
}

/** A caller's own name for a person to recognise: short, and on one line. */
function nameShown(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : shown(name)
}

function* pairs(query: string): Iterable<[name: string, value: string]> {
  for (const part of query.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    yield at === -1 ? [decode(part), ''] : [decode(part.slice(0, at)), decode(part.slice(at + 1))]
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new CeError(
      'PARAMETER_INVALID',
      `invalid query parameters: ${shown(text)} is not percent-encoded UTF-8; write a percent sign as %25`,
    )
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
    problems.push({ parameter: name, given: 'there more than once', allowed: `given once: ${allowedBy(schema)}` })
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
    if (value === undefined) return required.includes(parameter) ? [{ parameter, allowed: allowedBy(property) }] : []
    const given = Array.isArray(value) ? `given ${value.length} times` : shown(String(value))
    if (Check(property, value)) return []
    return [{ parameter, given, allowed: allowedBy(property) }]
  })
}

function names(schema: TObject): string {
  const known = Object.keys(schema.properties)
  return known.length === 0 ? 'left out: the route takes none' : `one of ${known.join(', ')}`
}

function keyword(schema: TSchema, name: string): unknown {
  return Reflect.get(schema, name)
}

/** What a schema allows, in words. */
function allowedBy(schema: TSchema): string {
  switch (keyword(schema, 'type')) {
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `a whole number from ${String(keyword(schema, 'minimum'))} to ${String(keyword(schema, 'maximum'))}`
    case 'array':
      return `given 1 to ${String(keyword(schema, 'maxItems'))} times, never empty`
    default: {
      const most = keyword(schema, 'maxLength')
      return typeof most === 'number' ? `a string of 1 to ${most} characters` : 'a string'
    }
  }
}
