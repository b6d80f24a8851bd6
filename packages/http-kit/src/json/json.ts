import { parseEscapedKeys, parseJsonText, shownText } from '@signalbox/broker-core/internal'

import { allSteps } from '../surface/fair-turns.ts'
import type { Steps } from '../surface/fair-turns.ts'
import { jsonTokens, scanJsonInSteps } from './scan.ts'
import type { ExceededLimit, ScanLimits } from './scan.ts'

/** A parsed JSON object. */
export type JsonObject = { readonly [key: string]: unknown }

/** Returns `true` if a value parsed from JSON is an object, not an array and not `null`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses a text as JSON. Returns the value in an object, or `undefined` if the text is not JSON. */
export function readJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: parseJsonText(text) }
  } catch {
    return undefined
  }
}

/** The most containers within containers in one JSON text from a caller. */
export const MAX_JSON_DEPTH = 128

/** The most keys of all objects in one JSON text from a caller. */
export const MAX_JSON_KEYS = 100_000

/**
 * The most strings, objects and arrays in one JSON text from a caller or an agent. A body of 10 MB can contain three
 * million; building 500,000 blocks the event loop for a quarter of a second.
 */
export const MAX_JSON_PARTS = 200_000

/** The most commas, and so about the most elements of all arrays, in one JSON text from a caller or an agent. */
const MAX_JSON_COMMAS = 1_000_000

/** The longest number in a JSON text, in characters: the time to read one grows with the square of its length. */
const MAX_JSON_NUMBER = 1_000

/** The most keys and commas in a request, outside a free-form member such as the parameters of an agent. */
const MAX_REQUEST_KEYS = 1_000
const MAX_REQUEST_COMMAS = 10_000

/** Returns the limits of a text from a caller or an agent, by the keys that lead to its free-form member. */
export function scanLimits(limits: JsonLimits, maxKeys = limits.maxKeys ?? MAX_JSON_KEYS): ScanLimits {
  const { maxDepth = MAX_JSON_DEPTH, freeForm } = limits
  return {
    maxDepth,
    maxKeys,
    maxParts: MAX_JSON_PARTS,
    maxCommas: MAX_JSON_COMMAS,
    maxNumber: MAX_JSON_NUMBER,
    outside: freeForm && { member: freeForm, maxKeys: MAX_REQUEST_KEYS, maxCommas: MAX_REQUEST_COMMAS },
  }
}

/** Returns the limit that a text exceeds, in words that follow "the body is". */
export function limitText(exceeded: ExceededLimit, { maxDepth, maxKeys, outside }: ScanLimits): string {
  switch (exceeded) {
    case 'depth':
      return `nested deeper than ${maxDepth} levels`
    case 'keys':
      return `an object with more than ${maxKeys} keys`
    case 'parts':
      return `JSON of more than ${MAX_JSON_PARTS} strings, objects and arrays`
    case 'commas':
      return `JSON of more than ${MAX_JSON_COMMAS} elements`
    case 'number':
      return `JSON with a number of more than ${MAX_JSON_NUMBER} characters`
    default: {
      const free = outside?.member.join('.') ?? ''
      const where = free === '' ? '' : ` outside ${free}`
      return `JSON of more than ${MAX_REQUEST_KEYS} keys or ${MAX_REQUEST_COMMAS} elements${where}`
    }
  }
}

/** Limits of {@link parseJson}. */
export interface JsonLimits {
  /**
   * The keys that lead to the member whose content is free; more than {@link MAX_REQUEST_KEYS} keys elsewhere are
   * refused. Without keys, no member is free. @default everything is free
   */
  readonly freeForm?: readonly string[] | undefined
  /** Containers within containers. @default 128 */
  readonly maxDepth?: number
  /** Keys of all objects together; 0 is no limit. @default 100000 */
  readonly maxKeys?: number
  /** Rejects a key that appears twice in one object. @default true */
  readonly uniqueKeys?: boolean
}

/** The reason for which {@link parseJson} rejects a text. */
export interface JsonProblem {
  /** A description of the text that follows "the body is". */
  readonly problem: string
  /** The limit that was exceeded, if any. */
  readonly exceeded?: ExceededLimit
}

/** A parsed text, or the reason for its rejection. */
export type ParsedJson = { readonly value: unknown } | JsonProblem

const NO_MEMBERS = { member(): void {} }

/**
 * Parses JSON from a caller or an agent. Limits are checked before any value is built. A key may not appear twice in
 * one object, because readers would disagree about its value.
 * @returns the value, or the problem with the text
 */
export function parseJson(text: string, limits: JsonLimits = {}): ParsedJson {
  return allSteps(parseJsonInSteps(text, limits))
}

/** Parses a long text as {@link parseJson} does, with pauses in the scan, after it, and after the values are built. */
export function* parseJsonInSteps(text: string, limits: JsonLimits = {}): Steps<ParsedJson> {
  const bounds = scanLimits(limits)
  const { exceeded, keys, escapedKeys } = yield* scanJsonInSteps(text, bounds, NO_MEMBERS)
  if (exceeded !== undefined) return { problem: limitText(exceeded, bounds), exceeded }
  yield
  const read = yield* readScanned(text, escapedKeys)
  if (read === undefined) return { problem: 'not valid JSON' }
  yield
  if (limits.uniqueKeys === false || countKeys(read.value) === keys) return read
  return { problem: `an object that has the key ${shownText(repeatedKey(text) ?? '')} twice` }
}

function* readScanned(text: string, escapedKeys: boolean): Steps<ReturnType<typeof readJson>> {
  try {
    return { value: escapedKeys ? yield* parseEscapedKeys(text) : JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Counts the keys of all objects in a parsed JSON value, in which each key of an object appears once. */
export function countKeys(value: unknown): number {
  let count = 0
  if (Array.isArray(value)) {
    // An index, because an iterator makes an object of each fraction.
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i]
      if (typeof element === 'object') count += countKeys(element)
    }
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      count++
      const member = value[key]
      if (typeof member === 'object') count += countKeys(member)
    }
  }
  return count
}

/** Returns a key that appears twice in one object of a valid JSON text. */
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
