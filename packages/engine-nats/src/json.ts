import type { Static, TSchema } from 'typebox'
import { Check } from 'typebox/schema'

/** A text of another node, or of the servers, as what the schema says; undefined when it is something else. */
export function jsonOf<T extends TSchema>(schema: T, text: string): Static<T> | undefined {
  const value = parsed(text)
  return Check(schema, value) ? value : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
