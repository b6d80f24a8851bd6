import { setTimeout as pause } from 'node:timers/promises'

/** Resolves when the condition holds. The time-out of the test is the limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5)
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
