import { test } from 'vitest'

import { runGroups } from './groups/group-runs.ts'

// oxlint-disable-next-line vitest/expect-expect -- fast-check asserts
test.each([3, 17])(
  'groups - random interleavings keep the order and the turns of groups (seed %i)',
  (seed) => runGroups(seed, 25, 90_000),
  120_000,
)
