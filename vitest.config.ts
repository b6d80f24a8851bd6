import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Tests run from TypeScript source, as `npm start` does: the condition selects `src` through the workspace links. */
const conditions = ['@signalbox/source']

const projects = globSync([
  'packages/*/package.json',
  'apps/*/package.json',
  'tools/package.json',
  'examples/package.json',
]).map((manifest) => ({
  extends: true as const,
  test: {
    name: (JSON.parse(readFileSync(manifest, 'utf8')) as { name: string }).name,
    root: dirname(manifest),
    include: ['test/**/*.test.ts'],
  },
}))

export default defineConfig({
  resolve: { conditions: [...conditions, 'node', 'import', 'default'] },
  ssr: {
    resolve: {
      conditions: [...conditions, 'node', 'import', 'default'],
      externalConditions: [...conditions, 'node', 'import'],
    },
  },
  test: {
    projects,
    pool: 'forks',
    execArgv: [`--conditions=${conditions[0]}`],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', './tools/testing/summary-reporter.ts'],
  },
})
