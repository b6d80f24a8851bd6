/**
 * A parsed glob, one symbol per element; a character matches itself. A regular expression built from the stars of a
 * caller could take unbounded time, so this file matches globs without one.
 */
export type Glob = readonly string[]

/** Matches any number of characters. Two characters long, so that no character of a text equals it. */
const ANY = '**'
/** Matches one character. */
const ONE = '??'

/** Parses a glob: `*` matches any characters, dots included, and `?` matches one. */
export function parseGlob(text: string): Glob {
  return Array.from(text.replace(/\*+/g, '*'), (character) =>
    character === '*' ? ANY : character === '?' ? ONE : character,
  )
}

/** Returns the text of a glob, as {@link parseGlob} reads it. */
export function globText(glob: Glob): string {
  return glob.map((symbol) => (symbol === ANY ? '*' : symbol === ONE ? '?' : symbol)).join('')
}

/**
 * Converts a subscription pattern to a glob. The glob matches slightly more, because `*` in a pattern matches only one
 * token.
 */
export function patternGlob(pattern: string): Glob {
  const glob: string[] = []
  for (const token of pattern.split('.')) {
    if (glob.length > 0) glob.push('.')
    if (token === '*' || token === '>') glob.push(ANY)
    else glob.push(...Array.from(token))
  }
  return glob
}

export function matchesGlob(glob: Glob, text: string): boolean {
  return coversGlob(glob, Array.from(text))
}

/**
 * Returns whether the glob surely matches everything that `inner` matches. A text is a glob that matches only itself.
 * Backtracking extends only the last star: the characters before it match already.
 */
export function coversGlob(glob: Glob, inner: Glob): boolean {
  let next = 0
  let at = 0
  let star = -1
  let takenUntil = 0
  while (at < inner.length) {
    const symbol = glob[next]
    if (symbol === ANY) {
      star = next++
      takenUntil = at
    } else if (symbol === inner[at] || (symbol === ONE && inner[at] !== ANY)) {
      next++
      at++
    } else if (star !== -1) {
      next = star + 1
      at = ++takenUntil
    } else {
      return false
    }
  }
  return next === glob.length || (next === glob.length - 1 && glob[next] === ANY)
}

/** Returns whether any text matches both globs. */
export function globsOverlap(a: Glob, b: Glob): boolean {
  // row[j] is true if the symbols of a so far, and the first j symbols of b, match a common text.
  let row = [true]
  for (const [j, y] of b.entries()) row.push(row[j] === true && y === ANY)
  for (const x of a) {
    const next = [row[0] === true && x === ANY]
    for (const [j, y] of b.entries()) {
      next.push(
        x === ANY || y === ANY
          ? row[j + 1] === true || next[j] === true
          : row[j] === true && (x === y || x === ONE || y === ONE),
      )
    }
    row = next
  }
  return row.at(-1) === true
}

/** The bits of a word. */
const WORD = 32

/** The maximum number of symbols, more than any name has: a longer glob matches nothing. */
const MAX_SYMBOLS = 1024

/** A symbol that matches any one character. Two characters long, so that no character of a name equals it. */
export const ANY_ONE = '??'

/** Compiles a glob to a matcher: `*` matches any characters, dots included, and `?` matches one. */
export function globMatcher(glob: string): (name: string) => boolean {
  const symbols: string[] = []
  const stars = new Set<number>()
  for (const character of glob) {
    if (character === '*') stars.add(symbols.length)
    else if (symbols.push(character === '?' ? ANY_ONE : character) > MAX_SYMBOLS) return () => false
  }
  return symbolMatcher(symbols, stars)
}

/** Returns the number of words for the states of an automaton. Each character of a name takes one step for each. */
export function wordsOf(symbols: number): number {
  return Math.floor(symbols / WORD) + 1
}

/**
 * Compiles symbols to a matcher: characters and {@link ANY_ONE}, with any characters before the symbols in `stars`. The
 * time of a match is linear in the length of the name: an automaton reads each character once, and its states are bits
 * of a few words. Bit i is set while the first i symbols match the characters read so far.
 */
export function symbolMatcher(symbols: readonly string[], stars: ReadonlySet<number>): (name: string) => boolean {
  const { length } = symbols
  const words = wordsOf(length)
  const loops = new Int32Array(words)
  for (const at of stars) setBit(loops, at)
  const { masks, others } = masksOf(symbols, words)
  const states = new Int32Array(words)
  return (name) => {
    if (name.length < length) return false
    states.fill(0)
    states[0] = 1
    for (const character of name) {
      if (!step(states, masks.get(character) ?? others, loops)) return false
    }
    return ((states[words - 1] ?? 0) & (1 << (length % WORD))) !== 0
  }
}

/** Compiles several globs to a matcher: a name matches if one of them does. */
export function nameMatcher(globs: readonly string[]): (name: string) => boolean {
  const matchers = globs.map(globMatcher)
  return (name) => matchers.some((matches) => matches(name))
}

/** Returns, for each character of the glob and for all other characters, a mask of the symbols that match it. */
function masksOf(
  symbols: readonly string[],
  words: number,
): { readonly masks: ReadonlyMap<string, Int32Array>; readonly others: Int32Array } {
  const others = new Int32Array(words)
  for (const [i, symbol] of symbols.entries()) if (symbol === ANY_ONE) setBit(others, i)
  const masks = new Map<string, Int32Array>()
  for (const [i, symbol] of symbols.entries()) {
    if (symbol === ANY_ONE) continue
    const mask = masks.get(symbol) ?? others.slice()
    setBit(mask, i)
    masks.set(symbol, mask)
  }
  return { masks, others }
}

function setBit(bits: Int32Array, at: number): void {
  const word = Math.floor(at / WORD)
  bits[word] = (bits[word] ?? 0) | (1 << (at % WORD))
}

/** Reads one character; returns false if no state remains. */
function step(states: Int32Array, mask: Int32Array, loops: Int32Array): boolean {
  let carry = 0
  let alive = 0
  for (let word = 0; word < states.length; word++) {
    const state = states[word] ?? 0
    const advanced = state & (mask[word] ?? 0)
    const next = (advanced << 1) | carry | (state & (loops[word] ?? 0))
    carry = advanced >>> (WORD - 1)
    states[word] = next
    alive |= next
  }
  return alive !== 0
}
