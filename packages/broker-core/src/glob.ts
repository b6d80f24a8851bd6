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
