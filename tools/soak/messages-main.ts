import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { soak, soakProblems } from './run.ts'

const HELP = `npm run soak -- [options]

Long polls and senders at once against the real server, over HTTP. Exits with 1 on an error, a lost or duplicated message,
or an event-loop delay over the budget.

  --seconds N    duration (default 60)
  --warm-up N    seconds of the same load before that, in which delays are not counted (default 10)
  --polls N      concurrent long polls (default 200)
  --senders N    concurrent senders (default 64)
  --queues N     queues they share (default 20)
  --rate N       sends a second of all senders together; 0, the default, sends after each acknowledgement
  --budget MS    event-loop delay p99 (default 5)
`

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    'warm-up': { type: 'string', default: '10' },
    polls: { type: 'string', default: '200' },
    senders: { type: 'string', default: '64' },
    queues: { type: 'string', default: '20' },
    rate: { type: 'string', default: '0' },
    budget: { type: 'string', default: '5' },
    help: { type: 'boolean', default: false },
  },
})

/** The clients run on one core, the server on the other, as in the benchmarks. */
function pin(): number | undefined {
  if (cpus().length < 2) return undefined
  try {
    execFileSync('taskset', ['-acp', '1', String(process.pid)], { stdio: 'ignore' })
    return 0
  } catch {
    return undefined
  }
}

exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else {
  const report = await soak({
    seconds: Number(values.seconds),
    warmUpSeconds: Number(values['warm-up']),
    polls: Number(values.polls),
    senders: Number(values.senders),
    queues: Number(values.queues),
    rate: Number(values.rate),
    delayBudgetMs: Number(values.budget),
    core: pin(),
    log: (line) => process.stderr.write(`${line}\n`),
  })
  const { latencyMs: latency, loopDelayMs: delay } = report
  const spread = ({ p50, p99, max }: typeof latency) =>
    `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, max ${max.toFixed(2)} ms`
  process.stdout.write(
    [
      `${values.polls} long polls, ${values.senders} senders, ${report.seconds.toFixed(1)} s`,
      `sent ${report.sent} (${Math.round(report.sent / report.seconds)}/s), received ${report.received}, lost ${report.lost}, doubled ${report.doubled}, errors ${report.errors.length}`,
      `send to receive: ${spread(latency)}`,
      `event-loop delay of the server: ${spread(delay)} (budget p99 ${values.budget} ms)`,
      '',
    ].join('\n'),
  )
  const problems = soakProblems(report)
  for (const problem of problems) process.stdout.write(`! ${problem}\n`)
  process.exitCode = problems.length === 0 ? 0 : 1
}
