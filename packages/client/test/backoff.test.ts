import { expect, test } from 'vitest'

import { backoff } from '../src/time.ts'

/** The waits before the same attempt of many clients. */
function waits(attempt: number, atLeastMs?: number): readonly number[] {
  return Array.from({ length: 1_000 }, () => backoff(attempt, atLeastMs))
}

test.each([
  [0, 50, 100],
  [1, 100, 200],
  [3, 400, 800],
  [7, 5_000, 10_000],
  [1_000, 5_000, 10_000],
])('backoff - attempt %i waits %i to %i ms, and not all clients the same time', (attempt, least, most) => {
  const all = waits(attempt)
  expect(Math.min(...all)).toBeGreaterThanOrEqual(least)
  expect(Math.max(...all)).toBeLessThanOrEqual(most)
  expect(Math.max(...all) - Math.min(...all)).toBeGreaterThan((most - least) / 2)
})

test('backoff - a client waits for at least the time that the server names', () => {
  expect(Math.min(...waits(0, 3_000))).toBe(3_000)
})
