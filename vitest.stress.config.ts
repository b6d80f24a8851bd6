import { defineConfig } from 'vitest/config'

import { tier } from './vitest.config.ts'

/**
 * Long runs of what `npm test` shows in short, one file after the other. `npm run test:stress` sets `STRESS_MS`: how long a file runs
 * that has no end of its own.
 */
export default defineConfig(
  tier('test/**/*.stress.ts', {
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    // The requirements are shown by every run of `npm test`.
    reporters: ['default', ['./tools/testing/summary-reporter.ts', { requirements: [] }]],
  }),
)
