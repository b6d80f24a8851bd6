import { existsSync, globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Tests run from TypeScript source, as `npm start` does: the condition selects `src` through the workspace links. */
const conditions = ['@signalbox/source']

const packages = globSync([
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

/** The cluster engine's tests run on the installed nats-server, and on the newest too where that was fetched (`npm run cluster -- fetch-server`). */
const newest = `${import.meta.dirname}/.nats-server/usr/sbin/nats-server`
const onNewest = {
  extends: true as const,
  test: {
    name: '@signalbox/engine-nats, newest nats-server',
    root: 'packages/engine-nats',
    include: ['test/**/*.test.ts'],
    env: { NATS_SERVER_BINARY: newest },
  },
}

export default defineConfig({
  resolve: { conditions: [...conditions, 'node', 'import', 'default'] },
  ssr: {
    resolve: {
      conditions: [...conditions, 'node', 'import', 'default'],
      externalConditions: [...conditions, 'node', 'import'],
    },
  },
  test: {
    projects: existsSync(newest) ? [...packages, onNewest] : packages,
    pool: 'forks',
    // Most tests wait for something: timers, disks, processes.
    maxWorkers: availableParallelism() + 1,
    execArgv: [`--conditions=${conditions[0]}`],
    testTimeout: 30_000,
    // On a busy machine a second is not long.
    expect: { poll: { timeout: 10_000 } },
    hookTimeout: 30_000,
    reporters: ['default', './tools/testing/summary-reporter.ts'],
  },
})
