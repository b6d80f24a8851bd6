import { ANY_ONE, symbolMatcher, wordsOf } from '../../glob.ts'

/** A compiled LIKE pattern. */
export interface LikePattern {
  readonly matches: (text: string) => boolean
  /** The steps for each character of a text, in addition to reading it once. */
  readonly stepsPerCharacter: number
}

/** The longest text, in UTF-16 units, that `indexOf` always finds in linear time. */
const MAX_SEARCHED = 250

/**
 * Compiles a LIKE pattern: `%` matches any number of characters, `_` one, `\%` and `\_` a literal `%` and `_`; other
 * characters match themselves. Without `_` and with short literals, the native search finds the literals one after the
 * other. Other patterns need an automaton, whose time grows with the product of text and pattern.
 */
export function compileLike(pattern: string): LikePattern {
  const symbols: string[] = []
  const stars = new Set<number>()
  const literals = ['']
  for (const [source] of pattern.matchAll(/\\[%_]|[^]/gu)) {
    if (source === '%') {
      stars.add(symbols.length)
      literals.push('')
      continue
    }
    const symbol = source === '_' ? ANY_ONE : source === '\\%' || source === '\\_' ? source.slice(1) : source
    symbols.push(symbol)
    literals.push(`${literals.pop() ?? ''}${symbol}`)
  }
  const isSearched =
    !symbols.includes(ANY_ONE) &&
    literals.slice(1, -1).every(({ length }) => length <= MAX_SEARCHED) &&
    // Half of a surrogate pair would be found within a whole one.
    pattern.isWellFormed()
  return isSearched
    ? { matches: literalMatcher(literals), stepsPerCharacter: 0 }
    : { matches: symbolMatcher(symbols, stars), stepsPerCharacter: 1 + wordsOf(symbols.length) }
}

/** Returns a matcher for literals with any characters between them. */
function literalMatcher(literals: readonly string[]): (text: string) => boolean {
  const [first = '', ...others] = literals
  const last = others.pop()
  if (last === undefined) return (text) => text === first
  return (text) => {
    if (!text.startsWith(first)) return false
    let at = first.length
    for (const literal of others) {
      const found = text.indexOf(literal, at)
      if (found === -1) return false
      at = found + literal.length
    }
    return at + last.length <= text.length && text.endsWith(last)
  }
}
