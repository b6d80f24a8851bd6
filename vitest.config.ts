import { existsSync, globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestProjectInlineConfiguration, ViteUserConfig } from 'vitest/config'
import { defineConfig } from 'vitest/config'

// Half of the CPU time would go into stripping types again, in each of some thousand writer threads and servers. The
// workers inherit this.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

// Tests read what processes print. Some hosts force colors, even for a number.
delete process.env['FORCE_COLOR']

/** Tests run from TypeScript source, as `npm start` does: the condition selects `src` through the workspace links. */
const conditions = ['@signalbox/source']

/** The cluster engine's tests run on the installed nats-server; those of what servers offer on the newest too where that was fetched (`npm run cluster -- fetch-server`). */
const newest = `${import.meta.dirname}/.nats-server/usr/sbin/nats-server`

/**
 * Packages whose test files share worker processes: they open no server, and leave nothing in the process. Where files share the
 * connections of `fetch` and the timers of servers, they fail on a busy machine.
 */
const SHARED = new Set(['@signalbox/broker-core'])

/** One for each package, with the files that the glob finds in it. */
function packageProjects(include: string): TestProjectInlineConfiguration[] {
  const manifests = ['packages/*/package.json', 'apps/*/package.json', 'tools/package.json', 'examples/package.json']
  return globSync(manifests).map((manifest) => {
    const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name: string }
    return {
      extends: true,
      test: { name, root: dirname(manifest), include: [include], isolate: !SHARED.has(name) },
    }
  })
}

function onNewest(): TestProjectInlineConfiguration[] {
  if (!existsSync(newest)) return []
  return [
    {
      extends: true,
      test: {
        name: '@signalbox/engine-nats, newest nats-server',
        root: 'packages/engine-nats',
        include: ['test/{contract,server-features,cluster}.test.ts'],
        env: { NATS_SERVER_BINARY: newest },
      },
    },
  ]
}

/** The configuration of a tier of tests: the files it has, and what is different in it. */
export function tier(include: string, options: ViteUserConfig['test'] = {}): ViteUserConfig {
  return {
    resolve: { conditions: [...conditions, 'node'] },
    ssr: {
      resolve: {
        conditions: [...conditions, 'node'],
        externalConditions: [...conditions, 'node'],
      },
    },
    test: {
      projects: packageProjects(include),
      pool: 'forks',
      // Most tests wait for something: timers, disks, processes.
      maxWorkers: availableParallelism() * 2,
      execArgv: [`--conditions=${conditions[0]}`],
      testTimeout: 30_000,
      // On a busy machine a second is not long.
      expect: { poll: { timeout: 10_000 } },
      hookTimeout: 30_000,
      reporters: ['default', './tools/testing/summary-reporter.ts'],
      ...options,
    },
  }
}

const EACH = 'test/**/*.test.ts'

export default defineConfig(
  tier(EACH, {
    projects: [...packageProjects(EACH), ...onNewest()],
    coverage: {
      provider: 'v8',
      // Relative to each project.
      include: ['src/**/*.ts'],
      // Code that only child processes and threads run counts as not covered.
      reporter: ['text-summary', 'json-summary'],
      // Raise them with the figures; they must not fall.
      thresholds: { statements: 95, branches: 91, functions: 96, lines: 97 },
    },
  }),
)
