import { defineConfig } from 'vitest/config'

const behaviours = { 'F-1': 'is shown by a test that passes', 'F-2': 'is shown by a test of the environment’s choice' }

/** A run of two tests, for the test of the summary reporter. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.fixture.ts'],
    reporters: [
      [
        '../../testing/summary-reporter.ts',
        {
          requirements: Object.entries(behaviours).map(([id, behaviour]) => ({ id, source: 'the fixture', behaviour })),
        },
      ],
    ],
  },
})
