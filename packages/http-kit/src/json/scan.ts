import { closingQuote, isBlank } from '@signalbox/broker-core/internal'

import { allSteps } from '../surface/fair-turns.ts'
import type { Steps } from '../surface/fair-turns.ts'

/**
 * Receives the members of the outermost object from {@link scanJson}, with the range `[start, end)` of each value's
 * source text.
 */
export interface MemberSink {
  member(key: string, start: number, end: number): void
  /**
   * Receives each element of an outermost array, after the members of the element if it is an object. An empty array has
   * one element, which is empty. @default neither elements nor their members are reported
   */
  element?(start: number, end: number): void
}

/** Limits of {@link scanJson}. A limit of 0 is none. */
export interface ScanLimits {
  /** Containers within containers; the outermost counts. */
  readonly maxDepth: number
  /** Keys of all objects together. */
  readonly maxKeys: number
  /** Strings, keys among them, objects and arrays together. */
  readonly maxParts: number
  /** Commas, each of which separates two members or elements. @default 0 */
  readonly maxCommas?: number
  /** Characters of a number or a literal. @default 0 */
  readonly maxNumber?: number
  /** Lower limits for the text outside one member. @default the limits above apply everywhere */
  readonly outside?: OutsideLimits | undefined
}

/** Limits for the text outside a free-form member. */
interface OutsideLimits {
  /** The keys that lead to the free-form member, from the outermost object; without keys, there is none. */
  readonly member: readonly string[]
  readonly maxKeys: number
  readonly maxCommas: number
}

/** A limit on JSON text. */
export type ExceededLimit = 'depth' | 'keys' | 'parts' | 'commas' | 'number' | 'outside'

/** The result of one pass over JSON text. */
export interface Scan {
  readonly exceeded: ExceededLimit | undefined
  /** Keys of all objects together, repeated ones included. */
  readonly keys: number
  /** `true` if a key has an escape: JSON.parse may read it wrong. */
  readonly escapedKeys: boolean
  /** An estimate of the memory that the values need, in bytes, without strings. */
  readonly valueBytes: number
  /** The range of the free-form member's value, with the blanks around it. */
  readonly freeForm: readonly [start: number, end: number] | undefined
  /** The place after the first bracket that closed the outermost array or object; 0 if there is none. */
  readonly end: number
}

/** Memory that V8 needs for an array or object, for a key, and for an element after a comma, in bytes. */
const CONTAINER_BYTES = 64
const KEY_BYTES = 32
const ELEMENT_BYTES = 8

export const QUOTE = 34
export const COMMA = 44
export const COLON = 58
export const OPEN_BRACKET = 91
export const BACKSLASH = 92
export const CLOSE_BRACKET = 93
export const OPEN_BRACE = 123
export const CLOSE_BRACE = 125

/**
 * Scans JSON text in one pass, without building or checking values. Counts depth, keys and parts, and reports the
 * members of the outermost object with the range of their source text, which JSON.parse loses. Strings are skipped at
 * the speed of indexOf, so a large body costs little.
 *
 * Invalid JSON gives an arbitrary result in linear time, and never an error: JSON.parse rejects it later.
 *
 * @returns the number of keys of all objects, and the limit that was exceeded, if any. The scan ends where a limit other
 * than the depth is exceeded, so that a large text costs little, and reports the members before that.
 */
export function scanJson(text: string, limits: ScanLimits, sink: MemberSink): Scan {
  return allSteps(scanJsonInSteps(text, limits, sink))
}

/** Characters that are scanned at once: up to a few milliseconds of work, for a text of many short parts. */
const PIECE_CHARACTERS = 131_072

/** Scans a text as {@link scanJson} does, with a pause after each piece. */
export function* scanJsonInSteps(text: string, limits: ScanLimits, sink: MemberSink): Steps<Scan> {
  const { maxDepth, outside } = limits
  const mostKeys = most(limits.maxKeys)
  const mostParts = most(limits.maxParts)
  const mostCommas = most(limits.maxCommas ?? 0)
  const mostNumber = most(limits.maxNumber ?? 0)
  const path = outside?.member ?? NO_PATH
  const mostOutsideKeys = outside?.maxKeys ?? mostKeys
  const mostOutsideCommas = outside?.maxCommas ?? mostCommas
  const length = text.length
  let exceeded: ExceededLimit | undefined
  let depth = 0
  let keys = 0
  let parts = 0
  let containers = 0
  let commas = 0
  /** Keys and commas in the free-form member. */
  let freeKeys = 0
  let freeCommas = 0
  /** The value of the free-form member, with the blanks around it. */
  let freeStart = 0
  let freeEnd = 0
  /** The number of keys of the path that lead to the current place. */
  let onPath = 0
  /** The depth of the object whose members are reported; 0 if none is. */
  let level = 0
  let isObject = false
  let elementStart = 0
  let end = 0
  let stringStart = 0
  let stringEnd = 0
  let key: string | undefined
  let valueStart = 0
  /** The start of the current number or literal. */
  let tokenStart = 0
  /** The last blanks. */
  let blankStart = 0
  let blankEnd = 0
  const hasEscapes = text.includes('\\')
  let escapedKeys = false
  let pauseAt = PIECE_CHARACTERS
  for (let at = 0; at < length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + PIECE_CHARACTERS
      yield
    }
    const char = text.charCodeAt(at)
    // Digits, the most frequent characters outside strings.
    if (char > COMMA && char < COLON) {
      if (at - tokenStart < mostNumber) continue
      exceeded ??= 'number'
      break
    }
    if (char === QUOTE) {
      let closing = text.indexOf('"', at + 1)
      if (closing !== -1 && text.charCodeAt(closing - 1) === BACKSLASH) closing = yield* escapedEnd(text, at, closing)
      if (closing === -1) break
      if (++parts > mostParts) {
        exceeded ??= 'parts'
        break
      }
      stringStart = at
      stringEnd = closing
      at = closing
    } else if (char === COLON) {
      keys++
      if (hasEscapes && !escapedKeys) escapedKeys = text.slice(stringStart, stringEnd).includes('\\')
      if (onPath > 0 && onPath === path.length) freeKeys++
      if (keys > mostKeys || keys - freeKeys > mostOutsideKeys) {
        exceeded ??= keys > mostKeys ? 'keys' : 'outside'
        break
      }
      if (depth === level && isObject) {
        key = keyText(text, stringStart, stringEnd)
        valueStart = at + 1
        if (level === 1 && path[0] === key) onPath = 1
      } else if (onPath > 0 && onPath < path.length && onPath === depth - 1) {
        if (path[onPath] === keyText(text, stringStart, stringEnd)) onPath = depth
      }
      if (onPath === depth && onPath === path.length) freeStart = at + 1
    } else if (char === COMMA) {
      commas++
      if (onPath > 0) {
        if (onPath >= depth) {
          if (onPath === path.length) freeEnd = at
          onPath = depth - 1
        } else if (onPath === path.length) freeCommas++
      }
      if (commas > mostCommas || commas - freeCommas > mostOutsideCommas) {
        exceeded ??= commas > mostCommas ? 'commas' : 'outside'
        break
      }
      if (depth === level && key !== undefined) {
        report(text, key, valueStart, at === blankEnd ? blankStart : at, sink)
        key = undefined
      } else if (depth === 1 && level === 2) {
        reportElement(text, elementStart, at === blankEnd ? blankStart : at, sink)
        elementStart = at + 1
      }
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
      if (++parts > mostParts) {
        exceeded ??= 'parts'
        break
      }
      containers++
      if (++depth > maxDepth) exceeded ??= 'depth'
      if (depth === 1) {
        level = char === OPEN_BRACE ? 1 : sink.element === undefined ? 0 : 2
        elementStart = at + 1
      }
      if (depth === level) isObject = char === OPEN_BRACE
    } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
      if (depth === level && key !== undefined) {
        report(text, key, valueStart, at === blankEnd ? blankStart : at, sink)
        key = undefined
      }
      if (depth === 1) {
        if (level === 2) reportElement(text, elementStart, at === blankEnd ? blankStart : at, sink)
        if (end === 0) end = at + 1
      }
      if (onPath >= depth && onPath > 0) {
        if (onPath === path.length) freeEnd = at
        onPath = depth - 1
      }
      depth--
    } else {
      if (isBlank(char)) {
        blankStart = at
        blankEnd = lastBlank(text, at) + 1
        if (at === tokenStart) tokenStart = blankEnd
        at = blankEnd - 1
      } else if (at - tokenStart >= mostNumber) {
        exceeded ??= 'number'
        break
      }
      continue
    }
    tokenStart = at + 1
  }
  const valueBytes = containers * CONTAINER_BYTES + keys * KEY_BYTES + commas * ELEMENT_BYTES
  return {
    exceeded,
    keys,
    escapedKeys,
    valueBytes,
    freeForm: freeEnd > freeStart ? [freeStart, freeEnd] : undefined,
    end,
  }
}

const NO_PATH: readonly string[] = []

function most(limit: number): number {
  return limit > 0 ? limit : Number.POSITIVE_INFINITY
}

/** A token that opens or closes a container, or a key. `key` is empty for other tokens. */
interface JsonToken {
  readonly token: 'open' | 'close' | 'key'
  readonly key: string
}

/** Yields the containers and keys of a valid JSON text. */
export function* jsonTokens(text: string): Generator<JsonToken> {
  let stringStart = 0
  let stringEnd = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) {
      const end = closingQuote(text, at)
      if (end === -1) return
      stringStart = at
      stringEnd = end
      at = end
    } else if (char === COLON) {
      yield { token: 'key', key: keyText(text, stringStart, stringEnd) }
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
      yield { token: 'open', key: '' }
    } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
      yield { token: 'close', key: '' }
    }
  }
}

/** Backslashes that are counted backwards. */
const FEW_BACKSLASHES = 1_024

/** Returns the end of a string whose first quote, at `quote`, follows a backslash. Pauses after each piece. */
function* escapedEnd(text: string, start: number, quote: number): Steps<number> {
  let at = quote - 1
  while (at > quote - FEW_BACKSLASHES && text.charCodeAt(at - 1) === BACKSLASH) at--
  if (at === quote - FEW_BACKSLASHES) at = start + 1
  // Each pair of backslashes is one escape.
  else if ((quote - at) % 2 === 0) return quote
  else at = quote + 1
  // A search for each of five million escaped quotes takes five times as long as this loop.
  for (let pauseAt = at + PIECE_CHARACTERS; at < text.length; at++) {
    if (at >= pauseAt) {
      pauseAt = at + PIECE_CHARACTERS
      yield
    }
    const char = text.charCodeAt(at)
    if (char === BACKSLASH) at++
    else if (char === QUOTE) return at
  }
  return -1
}

/** Returns a key as JSON.parse reads it, so that a key with escapes equals the same key without them. */
function keyText(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end)
  if (!raw.includes('\\')) return raw
  try {
    return String(JSON.parse(text.slice(start, end + 1)))
  } catch {
    return raw
  }
}

/** @param to The end of the value, without blanks */
function report(text: string, key: string, from: number, to: number, sink: MemberSink): void {
  const start = valueStartOf(text, from, to)
  sink.member(key, start, Math.max(start, to))
}

/** @param to The end of the element, without blanks */
function reportElement(text: string, from: number, to: number, sink: MemberSink): void {
  const start = valueStartOf(text, from, to)
  sink.element?.(start, Math.max(start, to))
}

/** Returns the place after the blanks before a value. */
function valueStartOf(text: string, from: number, to: number): number {
  return from < to && isBlank(text.charCodeAt(from)) ? lastBlank(text, from) + 1 : from
}

const BLANKS = /[\t\n\r ]+/y

/** Blanks that are skipped without a search. */
const FEW_BLANKS = 64

/** Returns the index of the last of the blanks that begin at `start`. */
function lastBlank(text: string, start: number): number {
  for (let at = start; at < start + FEW_BLANKS; at++) if (!isBlank(text.charCodeAt(at + 1))) return at
  // For ten megabytes of blanks, the search takes a tenth of the time of the loop.
  BLANKS.lastIndex = start
  BLANKS.test(text)
  return BLANKS.lastIndex - 1
}

const NO_LIMITS: ScanLimits = { maxDepth: Number.MAX_SAFE_INTEGER, maxKeys: 0, maxParts: 0 }

class OneMember implements MemberSink {
  readonly #text: string
  readonly #key: string
  found: string | undefined

  constructor(text: string, key: string) {
    this.#text = text
    this.#key = key
  }

  member(key: string, start: number, end: number): void {
    if (key === this.#key) this.found = this.#text.slice(start, end)
  }
}

/**
 * Returns the source text of one member of a JSON object; of the last one if the key is repeated. `objectText` is the
 * source text of the object.
 */
export function memberText(objectText: string, key: string): string | undefined {
  return allSteps(memberTextInSteps(objectText, key))
}

/** Finds a member as {@link memberText} does, with a pause after each piece. */
export function* memberTextInSteps(objectText: string, key: string): Steps<string | undefined> {
  const member = new OneMember(objectText, key)
  yield* scanJsonInSteps(objectText, NO_LIMITS, member)
  return member.found
}

/** Returns the source texts of the elements of a JSON array. For invalid JSON the result is arbitrary. */
export function elementTexts(arrayText: string): readonly string[] {
  const elements: string[] = []
  const sink: MemberSink = {
    member() {},
    element(start, end) {
      if (end > start) elements.push(arrayText.slice(start, end))
    },
  }
  scanJson(arrayText, NO_LIMITS, sink)
  return elements
}
