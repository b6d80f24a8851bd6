import { join } from 'node:path'

import { commandLine, flag, list, number, progress as log } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'
import { pinLoad } from '@signalbox/testkit/process-cpu'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { Report } from './report.ts'
import {
  comparedCpu,
  describeProfiles,
  joined,
  judged,
  machine,
  markdown,
  RESULTS,
  versions,
  writeReport,
} from './report.ts'
import type { BenchContext, Row } from './row.ts'
import { ROWS } from './rows/index.ts'
import type { Subject } from './subject.ts'
import { checkOut, WORKING_TREE, workingCommit } from './subject.ts'

function chosenRows(only: readonly string[] | undefined): readonly Row[] {
  if (only === undefined) return ROWS.filter(({ onRequest }) => onRequest !== true)
  return only.map((id) => {
    const row = ROWS.find((other) => other.id === id)
    if (row === undefined) throw new Error(`no row ${id}; there are ${ROWS.map((other) => other.id).join(', ')}`)
    return row
  })
}

async function main(): Promise<number> {
  const { values } = commandLine(
    {
      usage: 'npm run bench -- [options]',
      about:
        'Measures the goals of the performance budget; prints a table and writes it, with every round, to tools/bench/results/.',
    },
    {
      only: list('ROW,…', `only these rows: ${ROWS.map(({ id }) => id).join(', ')}`),
      rounds: number('N', 'rounds of each alternative (default 5; 3 with --quick)'),
      processes: number(
        'N',
        'times that each row starts its processes again (default 1); two processes of one commit differ by up to 25 %',
      ),
      settle: number(
        'SECONDS',
        'unmeasured rounds before the first; after 130 s of ce-send and message-id, expired ids are deleted in the rounds',
      ),
      quick: flag('short rounds and a small backlog: checks that it works; the values mean nothing'),
      against: list('COMMIT,…', 'measures these commits too, interleaved with the working tree'),
      profile: flag(
        'writes CPU profiles of the measured processes and prints the hottest functions; ignore the measurements',
      ),
      must: flag('exit with 1 when a goal\'s "must" is missed'),
    },
  )
  const rows = chosenRows(values.only)
  const { quick, rounds = quick ? 3 : 5 } = values
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds ${rounds}: it must be a whole number of at least 1`)
  const { processes = 1 } = values
  if (!Number.isInteger(processes) || processes < 1)
    throw new Error(`--processes ${processes}: it must be a whole number of at least 1`)
  await using folder = await TemporaryFolder.create('bench')
  using stack = new DisposableStack()
  const subjects: Subject[] = [WORKING_TREE]
  for (const commit of values.against ?? []) subjects.push(stack.use(checkOut(commit, join(folder.path, commit))))
  const at = new Date().toISOString()
  const context: BenchContext = {
    subjects,
    rounds,
    roundMs: quick ? 500 : 2000,
    settleMs: (values.settle ?? 0) * 1000,
    warmUpMs: quick ? 500 : 3000,
    quick,
    core: pinLoad()?.measured,
    folder: folder.path,
    profiles: values.profile ? join(RESULTS, `profiles-${at.replaceAll(':', '-').slice(0, 19)}`) : undefined,
    log,
  }
  const measures: Report['measures'][number][] = []
  const against: Report['against'][number][] = []
  for (const row of rows) {
    context.log(`── ${row.title}`)
    const runs: Awaited<ReturnType<Row['run']>>[] = []
    while (runs.length < processes) runs.push(await row.run(context))
    measures.push(...joined(runs).map(judged))
    against.push(...comparedCpu(runs, WORKING_TREE.label))
  }
  const report: Report = {
    at,
    commit: workingCommit(),
    rounds,
    processes,
    roundMs: context.roundMs,
    quick: context.quick,
    machine: machine(context.core),
    versions: versions(),
    measures,
    against,
  }
  process.stdout.write(`${markdown(report)}\n`)
  if (context.profiles !== undefined) process.stdout.write(await describeProfiles(context.profiles))
  context.log(`written to ${await writeReport(report)}.json and .md`)
  return values.must && measures.some(({ verdict }) => verdict === 'missed') ? 1 : 0
}

exitOnSignals()
process.exitCode = await main()
