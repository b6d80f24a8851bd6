import { test } from 'vitest'

import { leavesNothing } from './nothing-left.ts'

// oxlint-disable-next-line vitest/expect-expect -- it asserts by itself
test('A3, A6, A10 - leaks: after hundreds of good and bad calls nothing is left of them', { timeout: 240_000 }, () =>
  leavesNothing(320),
)
