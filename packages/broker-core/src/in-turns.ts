import { setImmediate as nextTurn } from 'node:timers/promises'

/** The longest time for which a pass over a long list blocks the event loop, in ms. */
const TURN_MS = 4
/** The items between two looks at the clock. */
const STRIDE = 256

/** Calls a function with each item of a long list, and yields to the event loop every few milliseconds. */
export async function inTurns<Item>(items: readonly Item[], visit: (item: Item) => void): Promise<void> {
  let until = performance.now() + TURN_MS
  for (let at = 0; at < items.length; at += STRIDE) {
    for (const item of items.slice(at, at + STRIDE)) visit(item)
    if (performance.now() < until) continue
    await nextTurn()
    until = performance.now() + TURN_MS
  }
}
