import { parseArgs } from 'node:util'

import { messageOf } from '@signalbox/broker-core/internal'
import { NATS_SERVER, natsServerVersion } from '@signalbox/engine-nats/testing'

import { exitOnSignals } from '../harness/signals.ts'
import { chaos } from './chaos.ts'
import { fetchDebianServer, fetchedServer } from './debian-server.ts'
import { LocalCluster } from './local-cluster.ts'
import { breaches, summary } from './report.ts'
import { aloneSummary, serversAlone } from './servers-alone.ts'

const HELP = `npm run cluster -- [chaos | servers-alone | fetch-server] [options]

Without a command: three nats-servers, three Signalbox nodes and a balancer on loopback, until it is interrupted.
chaos: mixed load, while nodes and servers are killed and frozen; ends with 1 when a promise was broken.
servers-alone: whether nats-servers that freeze keep what they acknowledge to a bare JetStream client, without Signalbox; ends
with 1 when they do not.
fetch-server: fetches Debian's newest nats-server and does not install it. Where the installed one is older than 2.10, or there
is none, the others fetch it by themselves.

  --server FILE  the nats-server to run

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

/** Servers before 2.10 lose what they acknowledged when they freeze (docs/guides/clustering.md). */
function isSafe(server: string | undefined): boolean {
  return server !== undefined && !/^2\.\d\./.test(natsServerVersion(server))
}

function safeServer(): string | undefined {
  if (isSafe(NATS_SERVER)) return NATS_SERVER
  try {
    return fetchedServer() ?? fetchDebianServer()
  } catch (error) {
    log(`no newer nats-server than the installed one: ${messageOf(error)}`)
    return NATS_SERVER
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: 'string' },
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
} else if (positionals[0] === 'fetch-server') {
  const server = fetchDebianServer()
  log(`nats-server ${natsServerVersion(server)}: ${server}`)
} else if (positionals[0] === 'servers-alone') {
  const { server: natsServer = safeServer() } = values
  const seed = positive('seed', values.seed) ?? 1
  const rounds = positive('rounds', values.rounds) ?? 2
  log(`seed ${seed}, nats-server ${natsServerVersion(natsServer)}`)
  const report = await serversAlone({ seed, rounds, natsServer, log })
  process.stdout.write(aloneSummary(report))
  process.exitCode = report.kept ? 0 : 1
} else if (positionals[0] === 'chaos') {
  const seed = positive('seed', values.seed) ?? Date.now() % 2 ** 31
  const rounds = positive('rounds', values.rounds)
  const minutes = positive('minutes', values.minutes) ?? (rounds === undefined ? 10 : undefined)
  const { hasty, logs, server: natsServer = safeServer(), 'kill-servers': onlyKill } = values
  log(`seed ${seed}, nats-server ${natsServerVersion(natsServer)}`)
  if (!isSafe(natsServer) && !onlyKill) {
    log(
      'servers before 2.10 lose what they acknowledged when they freeze (docs/guides/clustering.md): take a newer one, or --kill-servers',
    )
  }
  const report = await chaos({ seed, rounds, minutes, hasty, freezeServers: !onlyKill, logs, natsServer, log })
  process.stdout.write(summary(report))
  process.exitCode = breaches(report).length === 0 ? 0 : 1
} else {
  const natsServer = values.server ?? safeServer()
  const cluster = await LocalCluster.start({ natsServer })
  log(`balancer ${cluster.front.url}`)
  for (const node of cluster.nodes) log(`node ${node?.http} (management ${node?.api}, pid ${node?.process.pid})`)
  for (const { url } of cluster.nats.servers) log(url)
  await new Promise(() => {})
}
