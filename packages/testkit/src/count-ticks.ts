import { onTestFinished } from 'vitest'

/** Counts the ticks of the event loop until the test ends. Returns a function that returns their number. */
export function countTicks(): () => number {
  let ticks = 0
  const count = (): void => {
    ticks++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  onTestFinished(() => clearImmediate(counting))
  return () => ticks
}
