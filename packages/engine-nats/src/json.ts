import type { Static, TSchema } from 'typebox'
import { Check } from 'typebox/schema'
import { Buffer } from 'node:buffer'

/** Parses a text from another node or from the servers. Returns undefined unless it matches the schema. */
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

/** Returns the text of a message. */
export function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString()
}
