import { Buffer, isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'

import type { Steps } from '../surface/fair-turns.ts'
import type { JsonObject } from './json.ts'
import { BACKSLASH, QUOTE } from './scan.ts'

/**
 * A long text of a message, cut out of its JSON. As a part of a text of 10 MB, V8 would decode, parse and encode it in
 * three steps of up to 100 ms each, and take memory for 40 MB; in pieces it takes a few milliseconds for each megabyte.
 */
export interface CutBody {
  /** The JSON with a short text in place of the long one. */
  readonly rest: Buffer
  /** The short text: it depends on the content alone, so that a comparison of arguments still compares the content. */
  readonly placeholder: string
  /** The long text in UTF-8. */
  readonly bytes: Uint8Array
}

/** Shorter texts, and those that are less than half of the JSON, are not cut out, in bytes of their source. */
const LONG_BYTES = 1_048_576

/** The source that is decoded at once, in bytes: less than a millisecond of work. */
const PIECE_BYTES = 131_072

/** A text with more escaped quotes is not cut out: to find its end would take long. */
const MAX_ESCAPED_QUOTES = 100_000
const QUOTES_AT_ONCE = 4_096

const KEY = Buffer.from('"body"')
/** The most places of the key that are looked at. */
const MAX_KEYS = 1_000

/**
 * Cuts the text of the member `body` out of a JSON text, if it is long. The member may be at any place, and a key that ends
 * with `"body` looks the same: see {@link restoreBody}, which knows by the parsed values.
 * @returns `undefined` if there is no long text, or if it is not valid: then the whole JSON shows its faults
 */
export function* cutBody(json: Buffer): Steps<CutBody | undefined> {
  if (json.byteLength < LONG_BYTES) return undefined
  for (let key = json.indexOf(KEY), keys = 0; key !== -1 && keys < MAX_KEYS; key = json.indexOf(KEY, key + 1), keys++) {
    const start = valueStart(json, key + KEY.length)
    if (start === -1) continue
    const end = yield* closingQuote(json, start)
    if (end === -1) return undefined
    if (end - start < Math.max(LONG_BYTES, json.byteLength / 2)) continue
    const decoded = yield* decodedText(json, start, end)
    if (decoded === undefined) return undefined
    const placeholder = `text with the SHA-256 ${decoded.hash}`
    const rest = Buffer.concat([json.subarray(0, start), Buffer.from(placeholder), json.subarray(end)])
    return { rest, placeholder, bytes: decoded.bytes }
  }
  // To look for the key in ten megabytes takes long enough.
  yield
  return undefined
}

/** Returns the place after the quote that begins the value of a key; -1 if no text follows the key. */
function valueStart(json: Buffer, afterKey: number): number {
  // Blanks around a colon; few, or this is not what clients write.
  const [between = ''] =
    /^[ \t\r\n]{0,16}:[ \t\r\n]{0,16}"/.exec(json.toString('latin1', afterKey, afterKey + 40)) ?? []
  return between === '' ? -1 : afterKey + between.length
}

function* closingQuote(json: Buffer, start: number): Steps<number> {
  let escaped = 0
  for (let at = json.indexOf(QUOTE, start); at !== -1; at = json.indexOf(QUOTE, at + 1)) {
    if (backslashesBefore(json, at, start) % 2 === 0) return at
    if (++escaped > MAX_ESCAPED_QUOTES) return -1
    if (escaped % QUOTES_AT_ONCE === 0) yield
  }
  return -1
}

function backslashesBefore(json: Buffer, at: number, start: number): number {
  let count = 0
  while (at - 1 - count >= start && json[at - 1 - count] === BACKSLASH) count++
  return count
}

/** The length of an escape such as `\\u00e9`. */
const UNICODE_ESCAPE = 6
const SMALL_U = 117
const HIGH_SURROGATE = /^d[89ab]/i

function* decodedText(
  json: Buffer,
  start: number,
  end: number,
): Steps<{ readonly bytes: Uint8Array; readonly hash: string } | undefined> {
  // A text is never longer than its source.
  const bytes = Buffer.allocUnsafeSlow(end - start)
  const hash = createHash('sha256')
  let length = 0
  for (let at = start; at < end;) {
    const next = pieceEnd(json, at, end)
    const written = decodePiece(json.subarray(at, next), bytes, length)
    if (written === undefined) return undefined
    hash.update(bytes.subarray(length, length + written))
    length += written
    at = next
    yield
  }
  return { bytes: new Uint8Array(bytes.buffer, 0, length), hash: hash.digest('hex') }
}

/** Returns the end of the next piece, which is between two characters of the text. */
function pieceEnd(json: Buffer, at: number, end: number): number {
  let next = at + PIECE_BYTES
  if (next >= end) return end
  const last = next - UNICODE_ESCAPE + json.subarray(next - UNICODE_ESCAPE, next).lastIndexOf(BACKSLASH)
  // Behind the escape in which the piece would end, and behind the second half of a surrogate pair.
  if (json[last] === BACKSLASH && backslashesBefore(json, last + 1, at) % 2 === 1) {
    const isUnicode = json[last + 1] === SMALL_U
    next = Math.max(next, last + (isUnicode ? UNICODE_ESCAPE : 2))
    if (isUnicode && HIGH_SURROGATE.test(json.toString('latin1', last + 2, next))) next += UNICODE_ESCAPE
  }
  while (next < end && ((json[next] ?? 0) & 0xc0) === 0x80) next++
  return Math.min(next, end)
}

/** Writes a piece as UTF-8. Returns the number of bytes; `undefined` if the piece is not valid. */
function decodePiece(source: Buffer, target: Buffer, at: number): number | undefined {
  if (!isUtf8(source)) return undefined
  let text: unknown
  try {
    text = JSON.parse(`"${source.toString('utf8')}"`)
  } catch {
    return undefined
  }
  return typeof text === 'string' && text.isWellFormed() ? target.write(text, at) : undefined
}

/** Arguments whose `body` was cut out, with that body. */
const BODIES = new WeakMap<object, Uint8Array>()

/**
 * Attaches a body that was cut out to the arguments that it belongs to.
 * @returns false if the place of the text was not `params.arguments.body`
 */
export function restoreBody(params: JsonObject | undefined, { placeholder, bytes }: CutBody): boolean {
  const args = params?.['arguments']
  if (typeof args !== 'object' || args === null || !('body' in args) || args.body !== placeholder) return false
  BODIES.set(args, bytes)
  return true
}

/** Returns the body that was cut out of these arguments; `undefined` if none was. */
export function bodyOf(args: object): Uint8Array | undefined {
  return BODIES.get(args)
}
