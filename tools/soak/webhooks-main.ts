import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { webhookSoak } from './webhooks.ts'

const HELP = `npm run soak -- webhooks [options]

Webhook subscriptions to as many events stores, and events at a fixed rate. In every second round one endpoint hangs, one
answers 500 and one is slow. Prints the times from the send of an event to the other endpoints, and the memory of the
server. Exits with 1 if a delivery was lost.

  --subscriptions N  (default 10000)
  --rate N           events a second (default 200)
  --rounds N         rounds without, and with, the bad endpoints (default 2)
  --seconds N        duration of a round (default 20)
`

exitOnSignals()
const { values } = parseArgs({
  options: {
    subscriptions: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
})
const print = (line: string) => void process.stdout.write(`${line}\n`)
if (values.help) {
  print(HELP)
} else {
  const report = await webhookSoak({
    subscriptions: Number(values.subscriptions),
    rate: Number(values.rate),
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    log: (line) => process.stderr.write(`${line}\n`),
  })
  print(`${report.subscriptions} subscriptions, created in ${report.createdSeconds.toFixed(0)} s`)
  for (const kind of ['without', 'with'] as const) {
    const { p50, p99, max } = report[kind]
    print(`${kind} the bad endpoints: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(1)} ms`)
  }
  for (const [kind, attempts] of Object.entries(report.attempts))
    print(`the endpoint that ${kind}: ${attempts} requests`)
  print(`${report.published} events, ${report.lost} lost`)
  print(
    `memory of the server: ${report.rssMib.map((mib) => mib.toFixed(0)).join(', ')} MiB (before, subscribed, at the end)`,
  )
  process.exitCode = report.lost === 0 ? 0 : 1
}
