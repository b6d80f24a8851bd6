import { test } from 'vitest'

import { agree } from './model/agreement.ts'

// oxlint-disable-next-line vitest/expect-expect -- fast-check asserts
test('C2, M9, C5 - queues: random interleavings agree with a simple model for as long as there is time', async () => {
  const deadline = Date.now() + Number(process.env['STRESS_MS'] ?? 0)
  const first = Date.now() % 2 ** 31
  // The seeds of every run come first, then new ones. A failure prints its seed.
  for (let round = 0; round < 2 || Date.now() < deadline; round++) {
    await agree([2, 11][round] ?? first + round, 100, 300_000)
  }
})
