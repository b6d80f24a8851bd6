import { parseArgs } from 'node:util'

import { natsServerVersion } from '@signalbox/engine-nats/testing'

import { exitOnSignals } from '../harness/signals.ts'
import { chaos } from './chaos.ts'
import { LocalCluster } from './local-cluster.ts'
import { breaches, summary } from './report.ts'

const HELP = `npm run cluster -- [chaos] [options]

Without a command: three nats-servers, three Signalbox nodes and a balancer on loopback, until it is interrupted.
chaos: mixed load, while nodes and servers are killed and frozen; ends with 1 when a promise was broken.

  --minutes N    for how long something is killed or frozen (default 10, unless --rounds is given)
  --rounds N     how often
  --seed N       repeats the choices of an earlier run
  --kill-servers only kills nats-servers, and freezes none
  --hasty        strikes on before the nats-servers are in step again, which NATS does not promise to survive
  --logs FOLDER  keeps what nodes and nats-servers say
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** @throws RangeError */
function positive(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new RangeError(`--${name}: ${JSON.stringify(text)}; allowed is a number above 0`)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    rounds: { type: 'string' },
    seed: { type: 'string' },
    'kill-servers': { type: 'boolean', default: false },
    hasty: { type: 'boolean', default: false },
    logs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else if (positionals[0] === 'chaos') {
  const seed = positive('seed', values.seed) ?? Date.now() % 2 ** 31
  const rounds = positive('rounds', values.rounds)
  const minutes = positive('minutes', values.minutes) ?? (rounds === undefined ? 10 : undefined)
  const { hasty, logs, 'kill-servers': onlyKill } = values
  const version = natsServerVersion()
  log(`seed ${seed}, nats-server ${version}`)
  if (/^2\.\d\./.test(version) && !onlyKill) {
    log(
      'servers before 2.10 lose what they acknowledged when they freeze (docs/clustering.md): take a newer one, or --kill-servers',
    )
  }
  const report = await chaos({ seed, rounds, minutes, hasty, freezeServers: !onlyKill, logs, log })
  process.stdout.write(summary(report))
  process.exitCode = breaches(report).length === 0 ? 0 : 1
} else {
  const cluster = await LocalCluster.start()
  log(`balancer ${cluster.front.url}`)
  for (const node of cluster.nodes) log(`node ${node?.http} (management ${node?.api}, pid ${node?.process.pid})`)
  for (const { url } of cluster.nats.servers) log(url)
  await new Promise(() => {})
}
