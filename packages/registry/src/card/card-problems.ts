import { shownText } from '@signalbox/broker-core/internal'
import { isJsonObject } from '@signalbox/http-kit'

import { Type } from 'typebox'
import type { TSchema } from 'typebox'
import { Check } from 'typebox/schema'

/** One problem of a card; `details` of the error lists all of them. */
export interface CardProblem {
  /** The path of the field, such as `name` or `skills[1].id`; `card` for the card itself. */
  readonly field: string
  /** The given value, shortened; absent when the field is missing. */
  readonly given?: string
  readonly allowed: string
}

/** The maximum number of characters of a value in a problem. */
const MAX_SHOWN = 64
/** The maximum number of problems in an error: a card of 64 KiB can have many thousands. */
export const MAX_PROBLEMS = 100

/**
 * Returns the problems of a value by its schema, at most {@link MAX_PROBLEMS}. The schema's descriptions say
 * the allowed values.
 */
export function cardProblems(schema: TSchema, value: unknown): readonly CardProblem[] {
  const problems: CardProblem[] = []
  collect(schema, value, '', problems)
  return problems.slice(0, MAX_PROBLEMS)
}

/** Returns a short text by which a reader recognizes the value. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  return value.length > MAX_SHOWN ? `${shownText(value.slice(0, MAX_SHOWN))}… (${value.length})` : shownText(value)
}

function collect(schema: TSchema, value: unknown, field: string, problems: CardProblem[]): void {
  // A plain boolean: as a type guard it would narrow the type below to never.
  const valid: boolean = Check(schema, value)
  if (valid || problems.length >= MAX_PROBLEMS) return
  if (Type.IsObject(schema) && isJsonObject(value)) {
    // TypeBox omits the keyword when no field is required, although the type declares it.
    const required: readonly string[] = schema.required ?? []
    for (const [name, part] of Object.entries(schema.properties)) {
      const inner = field === '' ? name : `${field}.${name}`
      if (Object.hasOwn(value, name) && value[name] !== undefined) collect(part, value[name], inner, problems)
      else if (required.includes(name)) problems.push({ field: inner, allowed: descriptionOf(part) })
    }
  } else if (Type.IsArray(schema) && Array.isArray(value)) {
    for (const [index, item] of value.entries()) collect(schema.items, item, `${field}[${index}]`, problems)
  } else {
    problems.push({ field: field === '' ? 'card' : field, given: shown(value), allowed: descriptionOf(schema) })
  }
}

/** Returns the schema's description of the allowed values. */
export function descriptionOf(schema: TSchema): string {
  const description: unknown = Reflect.get(schema, 'description')
  return typeof description === 'string' ? description : 'a valid value'
}
