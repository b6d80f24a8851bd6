import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { toolCall } from '@signalbox/testkit/mcp-client'
import { serverScript, startSignalbox } from '@signalbox/testkit/signalbox-server'

import { depth, filledStore } from '../filled-store.ts'
import { guard } from '../guarded.ts'
import type { RequestFigures } from '../processes.ts'
import { newFolder, openLoad, startMetricsHost, startServer } from '../processes.ts'
import type { BenchContext, Goal, Row, Run } from '../row.ts'
import { atMost, inSequence, interleave, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'

type StartFigures = { readonly s: number }

/** A way to start the server: from source, as `npm start` does, or as the published package does. */
interface Start {
  readonly label: string
  readonly built: boolean
}

const STARTS: readonly Start[] = [
  { label: 'source', built: false },
  { label: 'built package', built: true },
]

const GOAL_NEW: Goal = atMost(4, 2, '×')
const GOAL_FILLED: Goal = atMost(5, 2.5, '×')

/** Measures a process that only loads Fastify, from its start to its end. */
async function loadFastify(subject: Subject): Promise<StartFigures> {
  const begin = performance.now()
  const child = spawn(process.execPath, ['-e', "require('fastify')"], { cwd: subject.root, stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the process that loads Fastify ended with ${String(code)}`)
  return { s: (performance.now() - begin) / 1000 }
}

/** Measures the time from starting the server to the first positive answer of `/ready`. */
async function start(context: BenchContext, subject: Subject, { built }: Start, storePath: string) {
  const begin = performance.now()
  await using server = await startSignalbox({
    root: subject.root,
    storePath,
    built,
    instrumented: false,
    env: { XDG_CACHE_HOME: join(context.folder, 'cache') },
  })
  const response = await fetch(`${server.api}/ready`)
  if (!response.ok) throw new Error(`/ready answered ${response.status} after the ready line`)
  await response.arrayBuffer()
  return { s: (performance.now() - begin) / 1000 }
}

async function measureStart(context: BenchContext, subject: Subject) {
  const starts = STARTS.filter(({ built }) => existsSync(serverScript(subject.root, built)))
  if (starts.length < STARTS.length) context.log(`${subject.label} is not built: only its source start is measured`)
  const filled = await filledStore(context, subject)
  // The first start compiles the code and stores it, and the first fetch loads the client of this process.
  for (const one of starts) await start(context, subject, one, newFolder(context))
  const measured = starts.flatMap((one) => [
    {
      name: `start to ready from ${one.label}, new store, vs a process that loads Fastify`,
      goal: GOAL_NEW,
      run: () => start(context, subject, one, newFolder(context)),
    },
    {
      name: `the same, ${one.label}, ${depth(context).toLocaleString('en')} messages stored`,
      goal: GOAL_FILLED,
      run: () => start(context, subject, one, filled.path),
    },
  ])
  const [yardstick = [], ...rounds] = await interleave(context.rounds, [
    () => loadFastify(subject),
    ...measured.map(({ run }) => run),
  ])
  return measured.map(({ name, goal }, i) => ({
    name,
    goal,
    samples: ratios(rounds[i] ?? [], yardstick, ({ s }) => s),
    details: { ...medians('signalbox', rounds[i] ?? []), ...medians('Fastify', yardstick) },
  }))
}

/**
 * The downtime of a restart. No process is pinned: a start uses several threads, and no load competes with it. The
 * compiled code of an earlier start is stored, as it is on a machine that restarts the server.
 */
export const coldStart: Row = {
  id: 'cold-start',
  title: 'start to ready vs a process that only loads Fastify, new store and 1 M messages stored',
  run: (context) => inSequence(context, (subject) => measureStart(context, subject)),
}

/** Opens calls that pass every meter with one message and one request each, without the disk. */
async function openMetered(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const json = toolCall('events_publish', { channel: 'bench.metrics', body: 'a'.repeat(64) })
  const { env, headers } = await guard(context)
  const runs: Run<RequestFigures>[] = []
  for (const mode of ['on', 'off'] as const) {
    const { process, url } = await startMetricsHost(context, subject, mode)
    stack.use(process)
    runs.push(await openLoad(context, stack, process, `${url}/mcp`, json))
  }
  const guarded = stack.use(await startServer(context, subject, { env }))
  runs.push(await openLoad(context, stack, guarded.process, `${guarded.http}/mcp`, json, headers))
  const open = stack.use(await startServer(context, subject))
  runs.push(await openLoad(context, stack, open.process, `${open.http}/mcp`, json))
  return runs
}

/** The cost of protection and metrics: metrics on a bare host, the rest on the server, each with and without. */
export const metrics: Row = {
  id: 'metrics',
  title: 'authentication (cached) + metrics + log + authorization per request, together',
  run: (context) =>
    inSequence(context, async (subject, stack) => {
      const runs = await openMetered(context, subject, stack)
      const [on = [], off = [], guarded = [], open = []] = await interleave(context.rounds, runs)
      const cost = (rounds: typeof on, i: number): number => rounds[i]?.['CPU µs/request'] ?? Number.NaN
      return [
        {
          name: 'authentication (cached), authorization, a log line and metrics, per request',
          goal: atMost(20, 12, 'µs'),
          samples: on.map((_, i) => cost(on, i) - cost(off, i) + cost(guarded, i) - cost(open, i)),
          details: {
            ...medians('metrics on', on),
            ...medians('metrics off', off),
            ...medians('guarded', guarded),
            ...medians('open', open),
          },
        },
      ]
    }),
}
