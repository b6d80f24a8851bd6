import { Type } from 'typebox'
import type { TSchema } from 'typebox'

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
      if (keyword('additionalProperties') === undefined) return 'an object'
      const most = keyword('maxProperties')
      return `an object whose values are strings${typeof most === 'number' ? `, with at most ${most} keys` : ''}`
    }
    case 'integer': {
      const minimum = JSON.stringify(keyword('minimum'))
      const maximum = JSON.stringify(keyword('maximum'))
      return maximum === undefined
        ? `a whole number of at least ${minimum}`
        : `a whole number from ${minimum} to ${maximum}`
    }
    default: {
      const most = keyword('maxLength')
      if (typeof most === 'number') return `a string of 1 to ${most} characters`
      return keyword('minLength') === undefined ? 'a string' : 'a string that is not empty'
    }
  }
}

/** Returns `true` if a schema allows any text, so that each value can be sent as text. */
export function takesText(schema: TSchema): boolean {
  return Reflect.get(schema, 'type') === 'string' && !Reflect.has(schema, 'enum')
}

/** Returns the error of a refinement for a value of the right type. */
export function refusal(schema: TSchema, value: unknown): string | undefined {
  if (!Type.IsRefine(schema) || !isOfType(schema, value)) return undefined
  return schema['~refine'].find(({ check }) => !check(value))?.error(value)
}

/** Returns `true` if a value has the schema's JSON type. */
export function isOfType(schema: TSchema, value: unknown): boolean {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return type === Reflect.get(schema, 'type')
}
