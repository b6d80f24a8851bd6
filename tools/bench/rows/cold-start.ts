import { depth, filledStore } from '../filled-store.ts'
import { newFolder, startServer } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

/** The time from starting the process to the first positive answer of `/ready`. */
async function start(context: BenchContext, subject: Subject, storePath: string) {
  const begin = performance.now()
  await using server = await startServer(context, subject, { storePath, instrumented: false })
  const readyLine = performance.now() - begin
  const response = await fetch(`${server.api}/ready`)
  if (!response.ok) throw new Error(`/ready answered ${response.status} after the ready line`)
  await response.arrayBuffer()
  return { 'to /ready s': (performance.now() - begin) / 1000, 'to the ready line s': readyLine / 1000 }
}

async function measureSubject(context: BenchContext, subject: Subject): Promise<readonly Measure[]> {
  const full = await filledStore(context, subject)
  const [empty = [], filled = []] = await interleave(context.rounds, [
    { label: 'empty', run: () => start(context, subject, newFolder(context)) },
    { label: 'filled', run: () => start(context, subject, full.path) },
  ])
  const measure = (name: string, must: number, rounds: typeof empty): Measure => ({
    name,
    subject: subject.label,
    goal: atMost(must, 0.5, 's'),
    samples: rounds.map((round) => round['to /ready s']),
    details: medians('', rounds),
  })
  return [
    measure('cold start to ready, new store', 1, empty),
    measure(`cold start to ready, ${depth(context).toLocaleString('en')} messages stored`, 1.5, filled),
  ]
}

/** The downtime of a restart. The row runs from source; an installed build has no types to strip. */
export const row: Row = {
  id: 'cold-start',
  title: 'cold start to ready, empty store and 1 M messages stored',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(...(await measureSubject(context, subject)))
    return measures
  },
}
