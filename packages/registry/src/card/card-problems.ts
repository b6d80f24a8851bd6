import { shownText } from '@signalbox/broker-core/internal'
import { isJsonObject } from '@signalbox/http-kit'

import { Type } from 'typebox'
import type { TSchema } from 'typebox'
import { Check } from 'typebox/schema'

/** One thing that is wrong with a card; `details` of the error lists all of them (R1). */
export interface CardProblem {
  /** Where: `name`, `skills[1].id`; `card` for the card itself. */
  readonly field: string
  /** What was given, cut; absent when nothing was. */
  readonly given?: string
  readonly allowed: string
}

/** More of a value helps nobody. */
const MAX_SHOWN = 64
/** A card of 64 KiB has room for many thousand mistakes. */
export const MAX_PROBLEMS = 100

/** Everything that is wrong with a value by its schema, up to {@link MAX_PROBLEMS}, each in the words of the schema's description. */
export function cardProblems(schema: TSchema, value: unknown): readonly CardProblem[] {
  const problems: CardProblem[] = []
  collect(schema, value, '', problems)
  return problems.slice(0, MAX_PROBLEMS)
}

/** A given value for a person to recognize: short, and never the whole of something large. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  return value.length > MAX_SHOWN ? `${shownText(value.slice(0, MAX_SHOWN))}… (${value.length})` : shownText(value)
}

function collect(schema: TSchema, value: unknown, field: string, problems: CardProblem[]): void {
  // As a plain boolean: as a type guard it would say that nothing is left below.
  const valid: boolean = Check(schema, value)
  if (valid || problems.length >= MAX_PROBLEMS) return
  if (Type.IsObject(schema) && isJsonObject(value)) {
    // TypeBox leaves the keyword out when nothing is required, whatever its type says.
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

/** What a schema allows, in words. */
export function descriptionOf(schema: TSchema): string {
  const description: unknown = Reflect.get(schema, 'description')
  return typeof description === 'string' ? description : 'a valid value'
}
