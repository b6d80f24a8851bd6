import type { TestProjectInlineConfiguration } from 'vitest/config'
import { defineConfig } from 'vitest/config'

import { packageProjects, tier } from './vitest.config.ts'

const LONG = 'stress.ts'

const CONSOLE = '@signalbox/console'

/**
 * The files of the console share a Chromium, and run beside each other: they wait for pages. Those that measure times in a page
 * run one by one, after them.
 */
const OPTIONS: Readonly<Record<string, TestProjectInlineConfiguration['test']>> = {
  [CONSOLE]: {
    globalSetup: `${import.meta.dirname}/packages/console/test/share-chromium.ts`,
    fileParallelism: true,
    maxWorkers: 3,
    sequence: { groupOrder: 0 },
    // Pages and the servers of three files share the processors.
    expect: { poll: { timeout: 60_000 } },
  },
  [`${CONSOLE}, alone`]: { sequence: { groupOrder: 1 } },
}

const projects = packageProjects(LONG, { [CONSOLE]: ['live-rate', 'many-channels'] }, CONSOLE)
for (const { test } of projects) if (typeof test?.name === 'string') Object.assign(test, OPTIONS[test.name])

/**
 * Long runs of what `npm test` shows in short, one file after the other. `npm run test:stress` sets `STRESS_MS`: the time that a file
 * without a fixed length runs.
 */
export default defineConfig(
  tier(LONG, {
    projects,
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 300_000,
    // The requirements are shown by every run of `npm test`.
    reporters: ['default', ['./tools/testing/summary-reporter.ts', { requirements: [] }]],
  }),
)
