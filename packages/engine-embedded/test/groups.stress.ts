import { test } from 'vitest'

import { runGroups } from './groups/group-runs.ts'

// oxlint-disable-next-line vitest/expect-expect -- fast-check asserts
test('groups - random interleavings keep the order and the turns of groups for as long as there is time', async () => {
  const deadline = Date.now() + Number(process.env['STRESS_MS'] ?? 0)
  const first = Date.now() % 2 ** 31
  // The seeds of every run come first, then new ones. A failure prints its seed.
  for (let round = 0; round < 2 || Date.now() < deadline; round++) {
    await runGroups([3, 17][round] ?? first + round, 100, 300_000)
  }
})
