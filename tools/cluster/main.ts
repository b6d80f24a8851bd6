import { parseArgs } from 'node:util'

import { messageOf } from '@signalbox/broker-core/internal'
import { NATS_SERVER, natsServerVersion } from '@signalbox/engine-nats/testing'
import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { chaos } from './chaos.ts'
import { fetchDebianServer, fetchedServer } from './debian-server.ts'
import { LocalCluster } from './local-cluster.ts'
import { breaches, summary } from './report.ts'
import { aloneSummary, serversAlone } from './servers-alone.ts'
import { upgrade, upgradeFaults } from './upgrade.ts'
import { webhookFaults, webhookKills, webhookSummary } from './webhook-kills.ts'

const HELP = `npm run cluster -- [chaos | upgrade | webhooks | servers-alone | fetch-server] [options]

Without a command: three nats-servers, three Signalbox nodes and a balancer on loopback, until it is interrupted.
chaos: runs mixed load while it kills and freezes nodes and servers; exits with 1 if a promise was broken.
upgrade: replaces nodes of another commit by nodes of the working tree, with calls and streams under way; exits with 1 if a
call failed or a stream ended without a last word.
webhooks: kills the node that serves webhook subscriptions every 20 s; exits with 1 if an event was lost, or if an ordered
subscription had two deliveries in flight.
servers-alone: checks, without Signalbox, that nats-servers that freeze keep every message that they acknowledge; exits
with 1 if they lose one.
fetch-server: fetches Debian's newest nats-server and does not install it. The other commands fetch it automatically if none
is installed, or only one older than 2.10.

  --server FILE  the nats-server to run

  --minutes N    the duration of the disasters (default 10, of webhooks 5, unless --rounds is given)
  --rounds N     the number of disasters
  --seed N       repeats the choices of an earlier run
  --nodes N      the number of Signalbox nodes of a chaos run (default 3)
  --kill-nodes   kills nodes, and strikes nothing else
  --kill-servers kills nats-servers, and never freezes them
  --hasty        strikes again before the nats-servers are in step, which NATS does not promise to survive
  --logs FOLDER  keeps the output of nodes and nats-servers
  --from COMMIT  the commit before the upgrade (default HEAD)
`

/** The time between two kills of the node that serves webhooks, in ms. */
const WEBHOOK_KILL_MS = 20_000

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** @throws RangeError */
function positive(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new RangeError(`--${name}: ${JSON.stringify(text)}; it must be a number above 0`)
}

/** Servers before 2.10 lose acknowledged messages when they freeze (docs/guides/clustering.md). */
function isSafe(server: string | undefined): boolean {
  return server !== undefined && !/^2\.\d\./.test(natsServerVersion(server))
}

function safeServer(): string | undefined {
  if (isSafe(NATS_SERVER)) return NATS_SERVER
  try {
    return fetchedServer() ?? fetchDebianServer()
  } catch (error) {
    log(`could not fetch a newer nats-server than the installed one: ${messageOf(error)}`)
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
    nodes: { type: 'string' },
    'kill-nodes': { type: 'boolean', default: false },
    'kill-servers': { type: 'boolean', default: false },
    hasty: { type: 'boolean', default: false },
    logs: { type: 'string' },
    from: { type: 'string', default: 'HEAD' },
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
} else if (positionals[0] === 'upgrade') {
  const report = await upgrade({ from: values.from, log })
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`)
  const faults = upgradeFaults(report)
  for (const fault of faults) log(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
} else if (positionals[0] === 'webhooks') {
  const kills = positive('rounds', values.rounds) ?? Math.ceil((positive('minutes', values.minutes) ?? 5) * 3)
  const { logs, server: natsServer = safeServer() } = values
  const report = await webhookKills({ kills, everyMs: WEBHOOK_KILL_MS, logs, natsServer, log })
  process.stdout.write(webhookSummary(report))
  const faults = webhookFaults(report)
  for (const fault of faults) log(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
} else if (positionals[0] === 'chaos') {
  const seed = positive('seed', values.seed) ?? Date.now() % 2 ** 31
  const rounds = positive('rounds', values.rounds)
  const minutes = positive('minutes', values.minutes) ?? (rounds === undefined ? 10 : undefined)
  const nodes = positive('nodes', values.nodes)
  const {
    hasty,
    logs,
    server: natsServer = safeServer(),
    'kill-servers': onlyKill,
    'kill-nodes': onlyKillNodes,
  } = values
  log(`seed ${seed}, nats-server ${natsServerVersion(natsServer)}`)
  if (!isSafe(natsServer) && !onlyKill && !onlyKillNodes) {
    log(
      'servers before 2.10 lose acknowledged messages when they freeze (docs/guides/clustering.md): use a newer one, or --kill-servers',
    )
  }
  const freezeServers = !onlyKill
  const report = await chaos({
    seed,
    rounds,
    minutes,
    hasty,
    nodes,
    freezeServers,
    onlyKillNodes,
    logs,
    natsServer,
    log,
  })
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
