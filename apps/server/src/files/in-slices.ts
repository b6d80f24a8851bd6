import { setImmediate as eventLoopTurn } from 'node:timers/promises'

/** The longest time for which a slice blocks the event loop, in ms. */
const SLICE_MS = 5

/**
 * Runs all steps in slices, and lets the event loop run between them. Rejects with the error of a
 * step.
 */
export async function inSlices<T>(steps: Generator<undefined, T>): Promise<T> {
  let until = performance.now() + SLICE_MS
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    if (performance.now() < until) continue
    await eventLoopTurn()
    until = performance.now() + SLICE_MS
  }
}
