import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { atFileLimit, fileLimitProblems } from './file-limit.ts'
import { IDLE_KINDS, idleConnections } from './idle-connections.ts'

const HELP = `npm run soak -- idle-connections [options]

Idle connections to the real server, some after half a head or a whole request: other clients get answers
meanwhile, the memory of each is printed, and the server closes them in time. Then more connections than the server may
have files open. Exits with 1 if a check failed. It takes two minutes; both ends need that many open files
(ulimit -n).

  --connections N  number of connections (default 10000)
  --files N        open files of the server in the second part (default 512)
`

exitOnSignals()
const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '10000' },
    files: { type: 'string', default: '512' },
    help: { type: 'boolean', default: false },
  },
})
const print = (line: string) => void process.stdout.write(`${line}\n`)
if (values.help) {
  print(HELP)
} else {
  const report = await idleConnections({
    connections: Number(values.connections),
    untilClosed: true,
    log: (line) => process.stderr.write(`${line}\n`),
  })
  const { callMs } = report
  print(`${report.connections} idle connections, opened in ${report.openSeconds.toFixed(1)} s, ${report.lost} lost`)
  print(`memory of the server: ${report.kib.toFixed(1)} KiB each`)
  print(
    `calls meanwhile, each on a new connection: p50 ${callMs.p50.toFixed(2)} ms, p99 ${callMs.p99.toFixed(2)} ms, max ${callMs.max.toFixed(2)} ms`,
  )
  for (const kind of IDLE_KINDS) {
    const { first, last } = report.closedAfter[kind] ?? {}
    print(`${kind}: closed after ${first?.toFixed(1) ?? 'never'} to ${last?.toFixed(1) ?? 'never'} s`)
  }
  const limit = await atFileLimit(Number(values.files))
  print(`${limit.tried} connections to a server with ${limit.openFiles} open files: ${limit.refused} refused`)
  for (const line of limit.lines) print(`  ${line}`)
  const problems = [...report.problems, ...fileLimitProblems(limit)]
  for (const problem of problems) print(`! ${problem}`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
