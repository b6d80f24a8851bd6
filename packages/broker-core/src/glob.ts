/**
 * A glob as symbols: a character stands for itself. By hand, because a regular expression made of somebody's stars takes
 * time without bound.
 */
export type Glob = readonly string[]

/** Any characters, or none. Two characters long, so that no character of a text is mistaken for it. */
const ANY = '**'
/** One character. */
const ONE = '??'

/** `*` stands for any characters, dots included, and `?` for one. */
export function parseGlob(text: string): Glob {
  return Array.from(text.replace(/\*+/g, '*'), (character) =>
    character === '*' ? ANY : character === '?' ? ONE : character,
  )
}

/** What a subscription pattern can match, as a glob: a little more, because its `*` stands for one token only. */
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
 * Whether the glob surely matches everything that `inner` does; a text is a glob that matches itself. Only the last star
 * ever needs to take more: what the ones before it have taken fits already.
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

/** Whether some text is matched by both. */
export function globsOverlap(a: Glob, b: Glob): boolean {
  // row[j]: whether what was seen of a, and the first j symbols of b, match a text in common.
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
