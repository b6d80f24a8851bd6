import { decodeText } from '@signalbox/broker-core'
import { parseJsonText } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

/** A number as its source text. `JSON.stringify` prints it unchanged. */
interface RawNumber {
  readonly rawJSON: string
}

declare global {
  /** Members of ES2026 that the type definitions of the compiler do not have yet. */
  interface JSON {
    rawJSON(text: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown
  }
}

/**
 * Bounds the depth and the number of values of JSON that passes unchanged, but not its keys: many and repeated keys
 * pass as they are.
 */
export const ANY_KEYS = { maxKeys: 0, uniqueKeys: false }

// A number after a separator that may be printed differently: minus zero, a fraction, an exponent, or 16 digits and
// more. Text in strings matches as well; the match decides only how the JSON is parsed.
const UNUSUAL_NUMBER = /(?:^|[[:,\s])(-0(?![.eE])|-?\d+(?=[.eE])(?:\.\d+)?(?:[eE][+-]?\d+)?|-?\d{16,})/g

/**
 * Parses JSON for translation. A number that JavaScript would print differently becomes a {@link RawNumber}, so that
 * translation preserves large integers and `1.0`.
 * @throws SyntaxError if the text is not JSON
 */
export function parseForTranslation(text: string): unknown {
  // A reviver makes parsing six times slower, and most texts need none.
  for (const [, number = ''] of text.matchAll(UNUSUAL_NUMBER)) {
    if (String(Number(number)) !== number) return parseJsonText(text, preserveNumber)
  }
  return parseJsonText(text)
}

/** Parses JSON for translation; undefined for a text, or bytes in UTF-8, that is not JSON. */
export function parsedJson(content: string | Uint8Array): unknown {
  try {
    return parseForTranslation(typeof content === 'string' ? content : (decodeText(content) ?? ''))
  } catch {
    return undefined
  }
}

/** Returns `true` for a JSON object; a {@link RawNumber} is none. */
export function isObject(value: unknown): value is JsonObject {
  return isJsonObject(value) && !JSON.isRawJSON(value)
}

/** Returns an object without its undefined members. */
export function defined(members: JsonObject): JsonObject {
  const present: Record<string, unknown> = {}
  for (const name of Object.keys(members)) if (members[name] !== undefined) present[name] = members[name]
  return present
}

function preserveNumber(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value === 'number' && source !== undefined && JSON.stringify(value) !== source
    ? JSON.rawJSON(source)
    : value
}

const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

const ISO_8601 =
  /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?(?:[Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?$/

/** The times that Protocol Buffers can hold: the years 1 to 9999, in ms. */
const MIN_MS = Date.parse('0001-01-01T00:00:00Z')
const MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Returns a time in RFC 3339 with `Z`, the only form that all parsers of Protocol Buffers accept. A time without a zone
 * is UTC. Digits after the ninth of a fraction are dropped. Returns undefined if the value is not a time.
 */
export function utcTimestamp(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const parts = ISO_8601.exec(value)
  if (parts === null) return undefined
  const [, date = '', time = '', fraction = '', sign, hours = '0', minutes = '0'] = parts
  const local = Date.parse(`${date}T${time}Z`)
  // Date.parse turns February 30 into March 2.
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(`${date}T${time}`)) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const utc = sign === undefined ? local : sign === '+' ? local - offset : local + offset
  if (utc < MIN_MS || utc > MAX_MS) return undefined
  if (RFC_3339_UTC.test(value)) return value
  return `${new Date(utc).toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction.slice(0, 9)}`}Z`
}

/** A value that cannot be translated, because it is not what its version of A2A defines. The message names the member. */
export class UntranslatableError extends Error {
  override readonly name = 'UntranslatableError'
}
