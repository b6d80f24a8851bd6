import { setImmediate as eventLoopTurn } from 'node:timers/promises'

/** How long the event loop is held at a time, in milliseconds. */
const SLICE_MS = 5

/** Runs all steps, and lets the event loop turn between slices of them. Rejects with what a step throws. */
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
