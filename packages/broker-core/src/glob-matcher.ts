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
