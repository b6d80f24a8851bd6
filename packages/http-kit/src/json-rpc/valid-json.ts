import type { Steps } from '../endpoint/fair-turns.ts'
import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, endOfString, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './scan.ts'

/** The most commas, and about the most characters, that are parsed at once: some milliseconds of work. */
const PIECE_COMMAS = 10_000
const PIECE_CHARACTERS = 1_048_576

/**
 * Returns `true` if a text is JSON, without building its value: a piece at a time, cut at commas. The brackets around a
 * piece, with an element before its first or after its last comma, make it a text that JSON.parse can check. The value
 * of a text with 100,000 long keys would take 80 ms, and readers of events do not need it.
 */
export function* isJson(text: string): Steps<boolean> {
  const open: boolean[] = []
  let prefix = ''
  let start = 0
  let commas = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) {
      at = endOfString(text, at)
      if (at === -1) return false
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) open.push(char === OPEN_BRACE)
    else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) open.pop()
    else if (char === COMMA && (++commas >= PIECE_COMMAS || at - start >= PIECE_CHARACTERS) && open.length > 0) {
      if (!isParsable(`${prefix}${text.slice(start, at)},${closing(open)}`)) return false
      prefix = `${opening(open)},`
      start = at + 1
      commas = 0
      yield
    }
  }
  return isParsable(prefix + text.slice(start))
}

function isParsable(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Returns the brackets of the open objects (`true`) and arrays, with an element in the innermost one. */
function opening(open: readonly boolean[]): string {
  return `${open.map((isObject) => (isObject ? '{"":' : '[')).join('')}0`
}

/** Returns an element of the innermost of the open objects (`true`) and arrays, and the brackets that close all. */
function closing(open: readonly boolean[]): string {
  const brackets = open.map((isObject) => (isObject ? '}' : ']')).toReversed()
  return `${open.at(-1) === true ? '"":0' : '0'}${brackets.join('')}`
}
