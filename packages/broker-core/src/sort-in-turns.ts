import { setImmediate as nextTurn } from 'node:timers/promises'

/** The names that are sorted without a pause: a few milliseconds. */
const RUN = 4_096
/** The longest time for which merging blocks the event loop, in ms. */
const TURN_MS = 4

/** Sorts names by their UTF-16 units. Sorting many yields to the event loop every few milliseconds. */
export async function sortInTurns(names: readonly string[]): Promise<string[]> {
  if (names.length <= RUN) return names.toSorted()
  let runs: string[][] = []
  for (let at = 0; at < names.length; at += RUN) {
    runs.push(names.slice(at, at + RUN).toSorted())
    await nextTurn()
  }
  while (runs.length > 1) {
    const merged: string[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? []))
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function merge(left: readonly string[], right: readonly string[]): Promise<string[]> {
  const merged: string[] = []
  let at = 0
  let until = performance.now() + TURN_MS
  for (const name of right) {
    for (let next = left[at]; next !== undefined && next <= name; next = left[++at]) merged.push(next)
    merged.push(name)
    if (merged.length % 64 !== 0 || performance.now() < until) continue
    await nextTurn()
    until = performance.now() + TURN_MS
  }
  for (; at < left.length; at++) merged.push(left[at] ?? '')
  return merged
}
