import { Buffer, isUtf8 } from 'node:buffer'

import { isBlank, parseJsonText } from '@signalbox/broker-core/internal'

import type { Steps } from '../surface/fair-turns.ts'
import type { JsonLimits, JsonObject, JsonProblem } from './json.ts'
import { limitText, scanLimits } from './json.ts'
import type { ExceededLimit } from './scan.ts'
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './scan.ts'

/** The members of an object by key, each as the bytes of its source text; of a repeated key, the last one. */
export type MemberBytes = ReadonlyMap<string, Uint8Array>

/** The members of a checked text, none if it is not an object, or the reason for its rejection. */
export type CheckedJson = { readonly members: MemberBytes } | JsonProblem

/** The token that may be next in a text. */
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end' | 'nothing'

const NOT_JSON: JsonProblem = { problem: 'not valid JSON' }

const PLUS = 43
const MINUS = 45
const DOT = 46
const ZERO = 48
const NINE = 57

/** Bytes that are checked at once: a millisecond of work. */
const PIECE_BYTES = 262_144

/**
 * Checks a JSON text in UTF-8 (RFC 8259), a piece at a time, without decoding it or building its value: for a reply of
 * ten megabytes each of these would block the event loop. Repeated keys are allowed.
 * @returns the members of the outermost object, or the problem with the text
 */
export function* checkJson(
  bytes: Uint8Array,
  limits: Pick<JsonLimits, 'maxDepth' | 'maxKeys'> = {},
): Steps<CheckedJson> {
  if (!isUtf8(bytes)) return { problem: 'not valid UTF-8' }
  const bounds = scanLimits(limits)
  const { maxDepth, maxKeys, maxParts, maxCommas = 0, maxNumber = 0 } = bounds
  const mostKeys = maxKeys > 0 ? maxKeys : Infinity
  const exceeds = (exceeded: ExceededLimit): JsonProblem => ({ problem: limitText(exceeded, bounds), exceeded })
  const members = new Map<string, Uint8Array>()
  /** The open containers; true for an object. */
  const open: boolean[] = []
  let expected: Expected = 'value'
  let keys = 0
  let parts = 0
  let commas = 0
  let stringStart = 0
  /** The current key of the outermost object, and the begin of its value. */
  let key = ''
  let valueStart = 0
  let pauseAt = PIECE_BYTES
  for (let at = 0; at < bytes.length;) {
    if (at >= pauseAt) {
      pauseAt = at + PIECE_BYTES
      yield
    }
    const byte = bytes[at] ?? 0
    if (isBlank(byte)) {
      at++
      continue
    }
    const isValue: boolean = expected === 'value' || expected === 'value or ]'
    if (isValue && open.length === 1) valueStart = at
    let isEnd = false
    if (byte === QUOTE) {
      if (!isValue && expected !== 'key' && expected !== 'key or }') return NOT_JSON
      if (++parts > maxParts) return exceeds('parts')
      stringStart = at++
      for (;;) {
        at = skipString(bytes, at, pauseAt)
        if (at < pauseAt || at >= bytes.length) break
        pauseAt = at + PIECE_BYTES
        yield
      }
      if (bytes[at++] !== QUOTE) return NOT_JSON
      if (isValue) isEnd = true
      else expected = 'colon'
      if (!isValue && open.length === 1) key = keyOf(bytes.subarray(stringStart, at))
    } else if (byte === COLON) {
      if (expected !== 'colon') return NOT_JSON
      if (++keys > mostKeys) return exceeds('keys')
      expected = 'value'
      at++
    } else if (byte === COMMA) {
      if (expected !== 'comma or end') return NOT_JSON
      if (++commas > maxCommas) return exceeds('commas')
      expected = open.at(-1) === true ? 'key' : 'value'
      at++
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (!isValue) return NOT_JSON
      if (++parts > maxParts) return exceeds('parts')
      if (open.push(byte === OPEN_BRACE) > maxDepth) return exceeds('depth')
      expected = byte === OPEN_BRACE ? 'key or }' : 'value or ]'
      at++
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      const isObject = byte === CLOSE_BRACE
      const isEmpty = expected === (isObject ? 'key or }' : 'value or ]')
      if ((!isEmpty && expected !== 'comma or end') || open.pop() !== isObject) return NOT_JSON
      isEnd = true
      at++
    } else {
      if (!isValue) return NOT_JSON
      const end = isNumberStart(byte) ? numberEnd(bytes, at) : literalEnd(bytes, at)
      if (end - at > maxNumber) return exceeds('number')
      if (end === -1) return NOT_JSON
      isEnd = true
      at = end
    }
    if (!isEnd) continue
    if (open.length === 1 && open[0] === true) members.set(key, bytes.subarray(valueStart, at))
    expected = open.length === 0 ? 'nothing' : 'comma or end'
  }
  return expected === 'nothing' ? { members } : NOT_JSON
}

function isNumberStart(byte: number): boolean {
  return byte === MINUS || isDigit(byte)
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE
}

/**
 * Reads the inside of a string. Returns the index of the closing quote, of the first character after `until`, or of a
 * character that a string must not have.
 */
function skipString(bytes: Uint8Array, from: number, until: number): number {
  let at = from
  while (at < until) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE || byte < 32) return at
    if (byte === BACKSLASH) {
      const length = escapeLength(bytes, at)
      if (length === 0) return at
      at += length
    } else at++
  }
  return at
}

// cspell:ignore bfnrt
/** The characters after a backslash, except for `u`. */
const ESCAPED: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'))
const LETTER_U = 117

/** Returns the length of an escape; 0 if it is not one. */
function escapeLength(bytes: Uint8Array, at: number): number {
  const letter = bytes[at + 1] ?? 0
  if (letter !== LETTER_U) return ESCAPED.has(letter) ? 2 : 0
  for (let digit = at + 2; digit < at + 6; digit++) if (!isHexDigit(bytes[digit] ?? 0)) return 0
  return 6
}

function isHexDigit(byte: number): boolean {
  const lower = byte | 32
  return isDigit(byte) || (lower >= 97 && lower <= 102)
}

/** Returns the end of a number; -1 if it is not one. */
function numberEnd(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === MINUS ? start + 1 : start
  const whole = digitsEnd(bytes, at)
  // No further digit follows a leading zero.
  if (whole === at || (bytes[at] === ZERO && whole > at + 1)) return -1
  at = whole
  if (bytes[at] === DOT) {
    const end = digitsEnd(bytes, at + 1)
    if (end === at + 1) return -1
    at = end
  }
  if (((bytes[at] ?? 0) | 32) !== 101) return at
  at++
  if (bytes[at] === PLUS || bytes[at] === MINUS) at++
  const end = digitsEnd(bytes, at)
  return end === at ? -1 : end
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from
  while (isDigit(bytes[at] ?? 0)) at++
  return at
}

const LITERALS = ['true', 'false', 'null'].map((literal) => Buffer.from(literal))

/** Returns the end of a literal; -1 if it is not one. */
function literalEnd(bytes: Uint8Array, at: number): number {
  const found = LITERALS.find((literal) => literal.every((byte, index) => byte === bytes[at + index]))
  return found === undefined ? -1 : at + found.length
}

/** Returns a key as JSON.parse reads it. */
function keyOf(source: Uint8Array): string {
  return String(JSON.parse(textOf(source)))
}

function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString()
}

/** Values of at most this many bytes are in an outline. */
const OUTLINED_BYTES = 65_536

/** The objects within objects that an outline has. */
const OUTLINE_DEPTH = 3

/**
 * Returns an object for readers that look at a few short members of a long text, a piece of work at a time: each long
 * string in it is empty, and so are long arrays and long objects that are nested deep.
 */
export function* outlineOf(members: MemberBytes, depth = OUTLINE_DEPTH): Steps<JsonObject> {
  const outline: [string, unknown][] = []
  for (const [key, bytes] of members) {
    if (bytes.byteLength <= OUTLINED_BYTES) outline.push([key, parseJsonText(textOf(bytes))])
    else if (bytes[0] === QUOTE) outline.push([key, ''])
    else if (bytes[0] === OPEN_BRACKET) outline.push([key, []])
    else {
      const inner = depth === 0 ? NOT_JSON : yield* checkJson(bytes, ANY_KEYS)
      outline.push([key, 'members' in inner ? yield* outlineOf(inner.members, depth - 1) : {}])
    }
    yield
  }
  return Object.fromEntries(outline)
}

const ANY_KEYS = { maxKeys: 0 }

/** Returns a JSON text without the blanks around it. */
export function trimmedJson(text: Uint8Array): Uint8Array {
  let start = 0
  let end = text.length
  while (isBlank(text[start] ?? 0)) start++
  while (end > start && isBlank(text[end - 1] ?? 0)) end--
  return text.subarray(start, end)
}

/** Returns a JSON text on one line, a piece at a time. Line ends are only between its tokens, and become blanks. */
export function* onOneLine(text: Uint8Array): Steps<Uint8Array> {
  if (!text.includes(10) && !text.includes(13)) return text
  yield
  const line = Buffer.from(text)
  for (let start = 0; start < line.length; start += PIECE_BYTES) {
    yield
    const end = Math.min(line.length, start + PIECE_BYTES)
    for (let at = start; at < end; at++) if (line[at] === 10 || line[at] === 13) line[at] = 32
  }
  return line
}
