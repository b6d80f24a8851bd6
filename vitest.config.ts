import { existsSync, globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestProjectInlineConfiguration, ViteUserConfig } from 'vitest/config'
import { defineConfig } from 'vitest/config'

import { sourceBundle } from './apps/server/scripts/source-bundle.ts'
import { LongestFirst } from './tools/testing/longest-first.ts'

// Half of the CPU time would go into stripping types again, in each of some thousand writer threads and servers. The
// workers inherit this.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

// Tests start some hundred servers and commands. Not in watch mode, in which the source changes.
if (process.argv.includes('run')) process.env['SOURCE_BUNDLE'] ??= await sourceBundle()

// Tests read what processes print. Some hosts force colors, even for a number.
delete process.env['FORCE_COLOR']

/** Tests run from TypeScript source, as `npm start` does: the condition selects `src` through the workspace links. */
const conditions = ['@signalbox/source']

/**
 * The cluster engine's tests run on the installed nats-server; with `NEWEST_NATS_SERVER=true`, as in the nightly run, those of
 * what servers offer run on the newest too (`npm run cluster -- fetch-server`).
 */
const newest = `${import.meta.dirname}/.nats-server/usr/sbin/nats-server`

type Sharing = Readonly<Record<string, readonly string[]>>

/**
 * Packages whose test files share worker processes: a worker loads the modules of a server once. Each package has the files that
 * need a process of their own: they count what is open in the process, measure its memory or its event loop, or replace its
 * clock or its timers. The files that wait most of the time are named too: more of those run beside each other.
 */
const SHARED: Sharing = {
  '@signalbox/broker-core': ['nodes'],
  '@signalbox/cli': [],
  '@signalbox/client': [],
  '@signalbox/connector-a2a': ['leaks', 'stream/many-streams'],
  '@signalbox/connector-cloudevents': ['subscribe-events', 'unowned-promises'],
  '@signalbox/connector-mcp': ['protocol-waiting', 'tools-channels'],
  '@signalbox/engine-embedded': [],
  '@signalbox/engine-nats': ['cluster', 'connection-loss', 'housekeeping', 'leases', 'nodes', 'queues'],
  '@signalbox/examples': [],
  '@signalbox/http-kit': ['json-rpc'],
  '@signalbox/management-api': ['history'],
  '@signalbox/registry': [],
  '@signalbox/channel-settings': [],
  '@signalbox/tools': [],
  '@signalbox/webhooks': [],
  signalbox: ['metrics', 'shutdown', 'start-cost'],
}

/**
 * Workers that run many files, after all others. A worker loads and compiles the modules once, so that more of them cost more
 * CPU time: with three on each processor a fifth, and no run ended earlier.
 */
const WORKERS = { isolate: false, maxWorkers: availableParallelism() * 2, sequence: { groupOrder: 1 } }

/**
 * A project for each package, with the files whose names end so. The files that share workers are one project, `shared`: a
 * worker runs files of one project only.
 */
export function packageProjects(
  suffix: string,
  sharing: Sharing = {},
  shared = 'shared',
): TestProjectInlineConfiguration[] {
  const manifests = ['packages/*/package.json', 'apps/*/package.json', 'tools/package.json', 'examples/package.json']
  const together: string[] = []
  const apart: string[] = []
  const projects = globSync(manifests).flatMap((manifest) => {
    const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name: string }
    const root = dirname(manifest)
    const alone = sharing[name]?.map((file) => `test/${file}.${suffix}`)
    if (alone === undefined) return [{ extends: true, test: { name, root, include: [`test/**/*.${suffix}`] } } as const]
    together.push(`${root}/test/**/*.${suffix}`)
    apart.push(...alone.map((file) => `${root}/${file}`))
    return alone.length === 0
      ? []
      : [{ extends: true, test: { name: `${name}, alone`, root, include: alone } } as const]
  })
  if (together.length === 0) return projects
  return [...projects, { extends: true, test: { name: shared, include: together, exclude: apart, ...WORKERS } }]
}

function onNewest(): TestProjectInlineConfiguration[] {
  if (process.env['NEWEST_NATS_SERVER'] !== 'true' || !existsSync(newest)) return []
  return [
    {
      extends: true,
      test: {
        name: '@signalbox/engine-nats, newest nats-server',
        root: 'packages/engine-nats',
        include: ['test/{contract,server-features,cluster,receivers}.test.ts'],
        ...WORKERS,
        sequence: { groupOrder: 2 },
        env: { NATS_SERVER_BINARY: newest },
      },
    },
  ]
}

/** The configuration of a tier of tests: how the names of its files end, and what is different in it. */
export function tier(suffix: string, options: ViteUserConfig['test'] = {}): ViteUserConfig {
  return {
    resolve: { conditions: [...conditions, 'node'] },
    ssr: {
      resolve: {
        conditions: [...conditions, 'node'],
        externalConditions: [...conditions, 'node'],
      },
    },
    test: {
      projects: packageProjects(suffix),
      pool: 'forks',
      // Most files with a process of their own wait for something: timers, disks, other processes.
      maxWorkers: availableParallelism() * 3,
      execArgv: [`--conditions=${conditions[0]}`],
      // On a busy machine everything takes ten times as long, and a second is not long.
      testTimeout: 60_000,
      expect: { poll: { timeout: 10_000 } },
      hookTimeout: 60_000,
      sequence: { sequencer: LongestFirst },
      reporters: ['default', './tools/testing/summary-reporter.ts'],
      ...options,
    },
  }
}

const EACH = 'test.ts'

export default defineConfig(
  tier(EACH, {
    projects: [...packageProjects(EACH, SHARED), ...onNewest()],
    coverage: {
      provider: 'v8',
      // Relative to the root: a run of some projects with coverage counts nothing.
      include: ['{packages,apps}/*/src/**/*.ts'],
      exclude: ['packages/testkit/**', 'packages/console/src/page/**'],
      reporter: ['text-summary', 'json-summary'],
      // Of a run of all tests. Code that only child processes and threads run counts as not covered.
      // Raise them with the figures; they must not fall.
      thresholds: { statements: 92, branches: 86, functions: 93, lines: 93 },
    },
  }),
)
