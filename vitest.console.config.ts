import { defineConfig } from 'vitest/config'

import { tier } from './vitest.config.ts'

/** The tests of every screen of the console, in a real Chromium: too long for `npm test`, which has a smoke of them. */
export default defineConfig(
  tier('stress.ts', {
    // Each file has a server and a browser.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: ['default', ['./tools/testing/summary-reporter.ts', { requirements: [] }]],
  }),
)
