import { isJsonObject } from './json.ts'

/**
 * Returns the canonical text of a JSON value (RFC 8785): members sorted by their UTF-16 code units, no
 * blanks. JSON.stringify prints texts and numbers as the RFC requires. The depth must be bounded.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => canonicalJson(one)).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`)
  return `{${members.join(',')}}`
}
