import { defineConfig } from 'vitest/config'

import { tier } from './vitest.config.ts'

/**
 * Long runs of what `npm test` shows in short, one file after the other. `npm run test:stress` sets `STRESS_MS`: the time that a file
 * without a fixed length runs.
 */
export default defineConfig(
  tier('stress.ts', {
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    // The requirements are shown by every run of `npm test`.
    reporters: ['default', ['./tools/testing/summary-reporter.ts', { requirements: [] }]],
  }),
)
