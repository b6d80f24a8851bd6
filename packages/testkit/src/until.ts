import { setTimeout as pause } from 'node:timers/promises'

/** The longest pause between two looks, in milliseconds. */
const MAX_PAUSE_MS = 25

/**
 * Resolves when the condition holds. The time-out of the test is the limit. Looks rarely at what takes long: a look may be a
 * request.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let pauseMs = 5; !(await condition()); pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 1.2)) await pause(pauseMs)
}

/** Repeats the assertion until it holds; throws its last error after `patienceMs`. */
export async function eventually(assertion: () => void | Promise<void>, patienceMs = 15_000): Promise<void> {
  const end = performance.now() + patienceMs
  for (;;) {
    try {
      await assertion()
      return
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await pause(10)
  }
}
