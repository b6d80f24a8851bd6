import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { chaos } from './chaos.ts'
import { LocalCluster } from './local-cluster.ts'

const HELP = `npm run cluster -- [chaos] [options]

Without a command: three nats-servers, three Signalbox nodes and a balancer on loopback, until it is interrupted.
chaos: kills and freezes one of them at a time under load, and checks that nothing acknowledged is lost.

  --rounds N   how often (default 20)
  --seed N     repeats the choices of an earlier run
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean', default: false } },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else if (positionals[0] === 'chaos') {
  const seed = Number(values.seed ?? Date.now() % 2 ** 31)
  log(`seed ${seed}`)
  const report = await chaos({ seed, rounds: Number(values.rounds ?? 20), log })
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`)
  process.exitCode = report.lost.length === 0 ? 0 : 1
} else {
  const cluster = await LocalCluster.start()
  log(`balancer ${cluster.front.url}`)
  for (const node of cluster.nodes) log(`node ${node?.http} (management ${node?.api}, pid ${node?.process.pid})`)
  for (const { url } of cluster.nats.servers) log(url)
  await new Promise(() => {})
}
