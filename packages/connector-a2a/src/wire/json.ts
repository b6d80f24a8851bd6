import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit'

/** A number as its source text. `JSON.stringify` prints it unchanged. */
export interface RawNumber {
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
    if (String(Number(number)) !== number) return JSON.parse(text, preserveNumber)
  }
  return JSON.parse(text)
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
