/**
 * Returns the candidate that is most similar to `name`, if one is close; otherwise the first one with the part `name`,
 * such as `http-port` for `port`.
 */
export function mostSimilar(name: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.min(4, Math.ceil(name.length / 3) + 1)
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best ?? candidates.find((candidate) => candidate.toLowerCase().split(/[-_.]/).includes(name.toLowerCase()))
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, x] of a.split('').entries()) {
    const next = [i + 1]
    for (const [j, y] of b.split('').entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (x === y ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
