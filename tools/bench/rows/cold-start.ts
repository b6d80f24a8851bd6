import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { serverScript, startSignalbox } from '../../harness/signalbox-server.ts'
import { depth, filledStore } from '../filled-store.ts'
import { newFolder } from '../processes.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Goal, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

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

async function measureSubject(context: BenchContext, subject: Subject): Promise<readonly Measure[]> {
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
  const alternatives: Alternative<StartFigures>[] = [
    { label: 'Fastify', run: () => loadFastify(subject) },
    ...measured.map(({ name, run }) => ({ label: name, run })),
  ]
  const [yardstick = [], ...rounds] = await interleave(context.rounds, alternatives)
  return measured.map(({ name, goal }, i) => ({
    name,
    subject: subject.label,
    goal,
    samples: ratios(rounds[i] ?? [], yardstick, ({ s }) => s),
    details: { ...medians('signalbox', rounds[i] ?? []), ...medians('Fastify', yardstick) },
  }))
}

/**
 * The downtime of a restart. No process is pinned: a start uses several threads, and no load competes with it. The
 * compiled code of an earlier start is stored, as it is on a machine that restarts the server.
 */
export const row: Row = {
  id: 'cold-start',
  title: 'start to ready vs a process that only loads Fastify, new store and 1 M messages stored',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(...(await measureSubject(context, subject)))
    return measures
  },
}
