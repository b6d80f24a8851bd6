import { messageOf } from '@signalbox/broker-core/internal'
import { NATS_SERVER, natsServerVersion } from '@signalbox/engine-nats/testing'
import { commandLine, conclude, flag, number, progress as log, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { chaos } from './chaos.ts'
import { fetchDebianServer, fetchedServer } from './debian-server.ts'
import { LocalCluster } from './local-cluster.ts'
import { breaches, summary } from './report.ts'
import { upgrade, upgradeFaults } from './upgrade.ts'
import { webhookFaults, webhookKills, webhookSummary } from './webhook-kills.ts'

/** The time between two kills of the node that serves webhooks, in ms. */
const WEBHOOK_KILL_MS = 20_000

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

const { values, positionals } = commandLine(
  {
    usage: 'npm run cluster -- [chaos | upgrade | webhooks | fetch-server] [options]',
    about: `Without a command: three nats-servers, three Signalbox nodes and a balancer on loopback, until it is interrupted.
chaos: runs mixed load while it kills and freezes nodes and servers; exits with 1 if a promise was broken.
upgrade: replaces nodes of another commit by nodes of the working tree, with calls and streams under way; exits with 1 if a
call failed or a stream ended without a last event.
webhooks: kills the node that serves webhook subscriptions every 20 s; exits with 1 if an event was lost, or if an ordered
subscription had two deliveries in flight.
fetch-server: fetches Debian's newest nats-server and does not install it. The other commands fetch it automatically if none
is installed, or only one older than 2.10.`,
  },
  {
    server: text('FILE', 'the nats-server to run'),
    minutes: number('N', 'the duration of the disasters (10, of webhooks 5, unless --rounds is given)'),
    rounds: number('N', 'the number of disasters'),
    seed: number('N', 'repeats the choices of an earlier run'),
    nodes: number('N', 'the number of Signalbox nodes of a chaos run', 3),
    'kill-nodes': flag('kills nodes, and strikes nothing else'),
    'kill-servers': flag('kills nats-servers, and never freezes them'),
    hasty: flag('strikes again before the nats-servers are in step, which NATS does not promise to survive'),
    logs: text('FOLDER', 'keeps the output of nodes and nats-servers'),
    from: text('COMMIT', 'the commit before the upgrade', 'HEAD'),
  },
)
exitOnSignals()
const [command] = positionals
if (command === 'fetch-server') {
  const server = fetchDebianServer()
  log(`nats-server ${natsServerVersion(server)}: ${server}`)
} else if (command === 'upgrade') {
  const report = await upgrade({ from: values.from, log })
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`)
  conclude(upgradeFaults(report))
} else if (command === 'webhooks') {
  const { minutes = 5, rounds: kills = Math.ceil(minutes * 3), logs, server: natsServer = safeServer() } = values
  const report = await webhookKills({ kills, everyMs: WEBHOOK_KILL_MS, logs, natsServer, log })
  process.stdout.write(webhookSummary(report))
  conclude(webhookFaults(report))
} else if (command === 'chaos') {
  const { seed = Date.now() % 2 ** 31, rounds, minutes = rounds === undefined ? 10 : undefined } = values
  const { nodes, hasty, logs, server: natsServer = safeServer() } = values
  const { 'kill-servers': onlyKill, 'kill-nodes': onlyKillNodes } = values
  const disasters = { nodes, onlyKillNodes, freezeServers: !onlyKill }
  log(`seed ${seed}, nats-server ${natsServerVersion(natsServer)}`)
  if (!isSafe(natsServer) && !onlyKill && !onlyKillNodes) {
    log(
      'servers before 2.10 lose acknowledged messages when they freeze (docs/guides/clustering.md): use a newer one, or --kill-servers',
    )
  }
  const report = await chaos({ seed, rounds, minutes, hasty, logs, natsServer, log, ...disasters })
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
