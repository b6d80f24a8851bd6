import { test } from 'vitest'

import { leavesNothing } from './nothing-left.ts'

// oxlint-disable-next-line vitest/expect-expect -- it asserts by itself
test('A3, A6, A10 - leaks: after ten thousand good and bad calls nothing is left of them', () => leavesNothing(10_000))
