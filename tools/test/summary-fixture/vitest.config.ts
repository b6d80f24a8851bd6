import { defineConfig } from 'vitest/config'

const behaviors = { 'F-1': 'is shown by a test that passes', 'F-2': 'is shown by a test of the environment’s choice' }

/** A run of two tests, for the test of the summary reporter. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.fixture.ts'],
    reporters: [
      [
        '../../testing/summary-reporter.ts',
        {
          requirements: Object.entries(behaviors).map(([id, behavior]) => ({ id, source: 'the fixture', behavior })),
        },
      ],
    ],
  },
})
