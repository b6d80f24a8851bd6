import type { ExceededLimit } from './json-rpc/scan.ts'
import { jsonTokens, scanJson } from './json-rpc/scan.ts'

export type JsonObject = { readonly [key: string]: unknown }

/** Whether a value that came out of JSON is an object: no array, and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a text means as JSON, wrapped since that may be any value; undefined when it is not JSON. */
export function readJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Containers within containers in one JSON text of a caller's. */
export const MAX_JSON_DEPTH = 128

/** Keys of all objects in one JSON text of a caller's. */
export const MAX_JSON_KEYS = 100_000

/**
 * Strings, objects and arrays in one JSON text of a caller's or an agent's. Building a million of them, which 10 MB can
 * hold three times over, keeps the event loop for half a second.
 */
export const MAX_JSON_PARTS = 500_000

export interface JsonLimits {
  /** @default 128 */
  readonly maxDepth?: number
  /** 0 is no limit. @default 100000 */
  readonly maxKeys?: number
  /** Refuse a key that stands twice in one object. @default true */
  readonly uniqueKeys?: boolean
}

export interface JsonProblem {
  /** What the text is, in words that go on from "the body is". */
  readonly problem: string
  /** The limit that was exceeded, if one was. */
  readonly exceeded?: ExceededLimit
}

const NO_MEMBERS = { member(): void {} }

/**
 * Reads JSON that a caller or an agent sent: within limits that are checked before anything is built, and with no key
 * twice in one object, so that no two readers can disagree.
 * @returns the value, or what is wrong with the text
 */
export function parseJson(
  text: string,
  { maxDepth = MAX_JSON_DEPTH, maxKeys = MAX_JSON_KEYS, uniqueKeys = true }: JsonLimits = {},
): { readonly value: unknown } | JsonProblem {
  const { exceeded, keys } = scanJson(text, { maxDepth, maxKeys, maxParts: MAX_JSON_PARTS }, NO_MEMBERS)
  if (exceeded === 'depth') return { problem: `nested deeper than ${maxDepth} levels`, exceeded }
  if (exceeded === 'keys') return { problem: `an object with more than ${maxKeys} keys`, exceeded }
  if (exceeded === 'parts')
    return { problem: `JSON of more than ${MAX_JSON_PARTS} strings, objects and arrays`, exceeded }
  const read = readJson(text)
  if (read === undefined) return { problem: 'not valid JSON' }
  if (!uniqueKeys || countKeys(read.value) === keys) return read
  return { problem: `an object that has the key ${JSON.stringify(repeatedKey(text))} twice` }
}

/** Counts the keys of all objects in a value that came out of JSON, which holds each key of an object once. */
export function countKeys(value: unknown): number {
  let count = 0
  if (Array.isArray(value)) {
    for (const element of value) if (typeof element === 'object') count += countKeys(element)
  } else if (isJsonObject(value)) {
    for (const key in value) {
      count++
      const member = value[key]
      if (typeof member === 'object') count += countKeys(member)
    }
  }
  return count
}

/** Finds a key that stands twice in one object of a valid JSON text. */
export function repeatedKey(text: string): string | undefined {
  const open: Set<string>[] = []
  for (const { token, key } of jsonTokens(text)) {
    if (token === 'open') open.push(new Set())
    else if (token === 'close') open.pop()
    else {
      const keys = open.at(-1)
      if (keys?.has(key) === true) return key
      keys?.add(key)
    }
  }
  return undefined
}
