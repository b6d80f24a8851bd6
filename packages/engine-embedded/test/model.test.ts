import { test } from 'vitest'

import { agree } from './model/agreement.ts'

// oxlint-disable-next-line vitest/expect-expect -- fast-check asserts
test.concurrent.each([2, 11])(
  'C2, M9, C5 - queues: random interleavings agree with a simple model (seed %i)',
  (seed) => agree(seed, 20, 90_000),
  120_000,
)
