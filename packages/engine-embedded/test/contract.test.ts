import { engineContract } from '@signalbox/broker-core/testing'
import { test } from 'vitest'

import { harness } from './contract-harness.ts'

// Most of a case's time is waiting, and each has a store of its own: they run side by side.
// oxlint-disable-next-line vitest/expect-expect -- a case asserts by itself, with any test runner
test.concurrent.for(engineContract)('$name', (one) => one.run(harness))
