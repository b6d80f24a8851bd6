/**
 * Control characters, and characters that change the text direction: U+202E displays a name as a different one. U+200C
 * and U+200D (joiners) are allowed, because words and emoji need them.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Returns the first control character in a text: a terminal or a page would obey it instead of showing it. */
export function controlCharacterIn(text: string): string | undefined {
  return text.match(CONTROL)?.[0]
}

/** Returns the code point of a character of the Basic Multilingual Plane, such as `U+202E`. */
export function codePoint(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** Replaces each control character with its code point. */
export function withoutControls(text: string): string {
  return text.replace(CONTROL, codePoint)
}

/**
 * Quotes a caller's text for an error or a log: shortened, on one line, with control characters as code points.
 * @param most The maximum number of characters of the text
 */
export function shownText(text: string, most = 64): string {
  return JSON.stringify(withoutControls(text.length > most ? `${text.slice(0, most)}…` : text))
}

/**
 * Returns the candidate that is most similar to `name`, if one is close; otherwise the first one with the part `name`,
 * such as `http-port` for `port`.
 */
export function mostSimilar(name: string, candidates: readonly string[]): string | undefined {
  const best = closest(name, candidates, Math.min(3, Math.ceil(name.length / 3)))
  return best ?? candidates.find((candidate) => candidate.toLowerCase().split(/[-_.]/).includes(name.toLowerCase()))
}

/**
 * Returns the candidate that is most similar to `name`, if at most `mistakes` letters are missing, superfluous, wrong,
 * or swapped with the next. Ignores case.
 */
export function closest(name: string, candidates: readonly string[], mistakes: number): string | undefined {
  let best: string | undefined
  let bestDistance = mistakes + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const [a, b] = [name.toLowerCase(), candidate.toLowerCase()]
    if (leastDistance(a, b) >= bestDistance) continue
    const distance = editDistance(a, b, bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/**
 * Returns a number of mistakes that two texts have at least: the characters that only one of them has. A start compares each
 * variable of its environment with each setting, and almost all pairs end here.
 */
function leastDistance(a: string, b: string): number {
  const surplus = new Int16Array(128)
  for (const [text, count] of [
    [a, 1],
    [b, -1],
  ] as const) {
    for (let i = 0; i < text.length; i++) {
      const at = text.charCodeAt(i) % surplus.length
      surplus[at] = (surplus[at] ?? 0) + count
    }
  }
  let [onlyA, onlyB] = [0, 0]
  for (const count of surplus) {
    if (count > 0) onlyA += count
    else onlyB -= count
  }
  return Math.max(onlyA, onlyB)
}

/** Returns the number of mistakes between two texts; a number of at least `enough` if there are so many. */
function editDistance(a: string, b: string, enough: number): number {
  let before: readonly number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const step = a[i] === b[j] ? 0 : 1
      const swapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j] ? (before[j - 1] ?? 0) + 1 : Infinity
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + step, swapped))
    }
    before = row
    row = next
    // A swap counts from the row before the last one.
    if (Math.min(...before, ...row) >= enough) return enough
  }
  return row.at(-1) ?? 0
}

/** Returns the number of mistakes with which a name of this length can still be recognized. */
export function plausibleMistakes(name: string): number {
  return Math.min(2, Math.floor(name.length / 3))
}
