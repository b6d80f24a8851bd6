import { randomUUID } from 'node:crypto'

const QUOTE = 34
const COLON = 58
const BACKSLASH = 92

/** A name that needs no escape in JSON. */
// oxlint-disable-next-line no-control-regex -- JSON requires escapes for control characters
const PLAIN_NAME = /^[^"\\\u0000-\u001f]*$/

/** Keys with escapes that are read between two pauses: a few milliseconds. */
const KEYS_BETWEEN_PAUSES = 2_048

/** Members and elements that are visited between two pauses. */
const VISITS_BETWEEN_PAUSES = 8_192

/**
 * Parses JSON as JSON.parse does, and reads keys with escapes right. V8 confuses such a key with one that an earlier text
 * had in the same place, if its source begins with the characters of that one: after `{"a":1,"\\":2}` it reads
 * `{"a":1,"\u00e9":2}` as `{"a":1,"\\":2}`. So one caller could change the messages of others.
 * https://github.com/nodejs/node/issues/63785, seen in Node 24 and 26
 * @throws SyntaxError
 */
export function parseJsonText(text: string, reviver?: Reviver): unknown {
  if (!text.includes('\\') || escapedKey(text, 0) === undefined) return JSON.parse(text, reviver)
  const steps = parseEscapedKeys(text, reviver)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Parses JSON in which a key has an escape as {@link parseJsonText} does, with pauses around JSON.parse. */
export function* parseEscapedKeys(text: string, reviver?: Reviver): Generator<undefined, unknown, undefined> {
  const names = new Names()
  const parts: string[] = []
  let copied = 0
  for (let key = escapedKey(text, 0); key !== undefined; key = escapedKey(text, copied)) {
    parts.push(text.slice(copied, key.start), names.plainKey(text.slice(key.start, key.end)))
    copied = key.end
    if (parts.length % (2 * KEYS_BETWEEN_PAUSES) === 0) yield
  }
  parts.push(text.slice(copied))
  const value: unknown = JSON.parse(parts.join(''), reviver)
  if (names.areAllPlain) return value
  yield
  yield* restoreNames(value, names)
  return value
}

type Reviver = Parameters<typeof JSON.parse>[1]

/** The range of a key, with its quotes. */
interface KeyRange {
  readonly start: number
  readonly end: number
}

/** Returns the first key with an escape from a place outside texts on; `undefined` if there is none. */
function escapedKey(text: string, from: number): KeyRange | undefined {
  let closing = -1
  for (let start = text.indexOf('"', from); start !== -1; start = text.indexOf('"', closing + 1)) {
    closing = closingQuote(text, start)
    if (closing === -1) return undefined
    const isKey = text.charCodeAt(afterBlanks(text, closing + 1)) === COLON
    if (isKey && text.slice(start, closing).includes('\\')) return { start, end: closing + 1 }
  }
  return undefined
}

/** Returns the place of the quote that ends a text of JSON whose opening quote is given, or -1. */
export function closingQuote(text: string, opening: number): number {
  const next = text.indexOf('"', opening + 1)
  if (next === -1 || text.charCodeAt(next - 1) !== BACKSLASH) return next
  for (let at = opening + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === BACKSLASH) at++
    else if (char === QUOTE) return at
  }
  return -1
}

function afterBlanks(text: string, from: number): number {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  return at
}

/** Returns whether a character is a blank between the tokens of JSON. */
export function isBlank(char: number): boolean {
  return char === 32 || char === 10 || char === 13 || char === 9
}

/** Replaces the names that need escapes in JSON by keys without. */
class Names {
  readonly #byKey = new Map<string, string>()
  readonly #keys = new Map<string, string>()
  /** The begin of the replacing keys, not of a number. Only the sender of the message could use it, against that message. */
  readonly #mark = `k${randomUUID().slice(0, 8)}`

  get areAllPlain(): boolean {
    return this.#byKey.size === 0
  }

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  /** Returns the name that a key replaces, or the key. */
  of(key: string): string {
    return this.#byKey.get(key) ?? key
  }

  /** Returns the source of a key without escapes. */
  plainKey(source: string): string {
    const name = String(JSON.parse(source))
    if (PLAIN_NAME.test(name)) return `"${name}"`
    const key = this.#keys.get(name) ?? `${this.#mark}${this.#keys.size}`
    this.#keys.set(name, key)
    this.#byKey.set(key, name)
    return `"${key}"`
  }
}

/** Gives the objects in a parsed value their names back, without recursion: the value may be deep. */
function* restoreNames(value: unknown, names: Names): Generator<undefined, void, undefined> {
  const waiting = [value]
  let visits = 0
  while (waiting.length > 0) {
    const container = waiting.pop()
    if (typeof container !== 'object' || container === null) continue
    const isArray = Array.isArray(container)
    const members: readonly unknown[] = isArray ? container : Object.values(container)
    for (const member of members) if (typeof member === 'object' && member !== null) waiting.push(member)
    if (!isArray) yield* rename(container, members, names)
    visits += members.length
    if (visits < VISITS_BETWEEN_PAUSES) continue
    visits = 0
    yield
  }
}

/** Renames the members of an object, whose values are given, and keeps their order. */
function* rename(object: object, members: readonly unknown[], names: Names): Generator<undefined, void, undefined> {
  const keys = Object.keys(object)
  if (!keys.some((key) => names.has(key))) return
  for (const key of keys) Reflect.deleteProperty(object, key)
  for (const [index, key] of keys.entries()) {
    if (index % VISITS_BETWEEN_PAUSES === VISITS_BETWEEN_PAUSES - 1) yield
    // An assignment to `__proto__` would set the prototype.
    const value = members[index]
    Object.defineProperty(object, names.of(key), { value, writable: true, enumerable: true, configurable: true })
  }
}
