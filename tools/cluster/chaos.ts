import { setTimeout as pause } from 'node:timers/promises'

import { Random } from '../harness/random.ts'
import { describe, kindOf, randomDisaster, strike } from './disasters.ts'
import type { Disaster, Started } from './disasters.ts'
import { assertReady } from './health-checks.ts'
import { AgentCallLoad } from './load/agent-calls.ts'
import { AgentStreamLoad, STREAM_IDLE_S } from './load/agent-streams.ts'
import { AgentProcesses } from './load/agents.ts'
import type { Book } from './load/book.ts'
import { within } from './load/calls.ts'
import { EventsStoreLoad } from './load/events-store.ts'
import type { Load, Scene } from './load/load.ts'
import { QueueLoad } from './load/queues.ts'
import { AGENT_TTL_S, RegistrationLoad } from './load/registrations.ts'
import { RequestLoad } from './load/requests.ts'
import { LocalCluster } from './local-cluster.ts'
import type { Recovery } from './recovery-watch.ts'
import { RecoveryWatch } from './recovery-watch.ts'
import { roundLines } from './report.ts'
import { Spells } from './spells.ts'

export interface ChaosOptions {
  readonly seed: number
  /** No further disaster after so many, if given. */
  readonly rounds?: number | undefined
  /** No further disaster after so many minutes, if given. */
  readonly minutes?: number | undefined
  /** A folder for what nodes and nats-servers say. */
  readonly logs?: string | undefined
  readonly log: (line: string) => void
}

export interface Round {
  readonly kind: string
  readonly recoveries: ReadonlyMap<string, Recovery>
  /** From the end until the struck node, or every node after a nats-server, served every kind of load itself, in milliseconds. */
  readonly itselfMs: number | undefined
  /** Messages that came to receivers once more in this round. */
  readonly again: number
}

export interface ChaosReport {
  readonly books: readonly Book[]
  readonly rounds: readonly Round[]
  readonly streamEnds: Readonly<AgentStreamLoad['ends']>
  readonly seconds: number
  /** What did not come back in time, or could not be checked. */
  readonly problems: readonly string[]
}

/** As long as it may take until everything goes again, in milliseconds. */
const RECOVERY_MS = 60_000
const CALM_MS = [500, 2_000] as const

/** Kills and freezes nodes and nats-servers under mixed load, and holds what came of it against what was acknowledged. */
export async function chaos({ seed, rounds, minutes, logs, log }: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed)
  const env = {
    CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS: String(STREAM_IDLE_S),
    CONNECTORSA2_A_AGENT_TTL_SECONDS: String(AGENT_TTL_S),
  }
  await using agents = await AgentProcesses.start()
  await using cluster = await LocalCluster.start({ env, logs })
  const watch = new RecoveryWatch()
  const scene: Scene = { front: cluster.front.url, watch, frozenNodes: new Spells(), struckServers: new Spells() }
  const streams = new AgentStreamLoad(scene)
  const queues = new QueueLoad(scene)
  const loads: readonly Load[] = [
    new RegistrationLoad(scene, agents.urls),
    queues,
    new EventsStoreLoad(scene),
    new RequestLoad(scene, 'commands'),
    new RequestLoad(scene, 'queries'),
    new AgentCallLoad(scene),
    streams,
  ]
  const problems: string[] = []
  const done: Round[] = []
  for (const load of loads) await load.start()
  await warmUp(watch)

  const startedAt = performance.now()
  const deadline = startedAt + (minutes ?? Number.POSITIVE_INFINITY) * 60_000
  while (done.length < (rounds ?? Number.POSITIVE_INFINITY) && performance.now() < deadline) {
    await pause(random.integer(...CALM_MS))
    const disaster = randomDisaster(random)
    log(
      `round ${done.length + 1}, after ${Math.round((performance.now() - startedAt) / 1000)} s: ${describe(disaster)}`,
    )
    const cameAgain = queues.receives.again
    watch.begin()
    const started = await strike(disaster, cluster, scene)
    watch.end()
    const [{ recoveries, missing }, itselfMs] = await Promise.all([
      watch.recovered(RECOVERY_MS),
      served(disaster, started, cluster, loads).catch((error: unknown) => {
        problems.push(`round ${done.length + 1}, ${describe(disaster)}: ${String(error)}`)
        return undefined
      }),
    ])
    for (const client of missing)
      problems.push(`round ${done.length + 1}, ${describe(disaster)}: ${client} is still down`)
    const again = queues.receives.again - cameAgain
    const round = { kind: kindOf(disaster), recoveries, itselfMs, again }
    done.push(round)
    for (const line of roundLines(round)) log(line)
  }

  const seconds = (performance.now() - startedAt) / 1000
  await Promise.all(loads.map((load) => load.stop()))
  const nodes = cluster.nodes.flatMap((node) => (node ? [node.http] : []))
  await Promise.all(
    loads.map((load) =>
      load.settle(nodes).catch((error: unknown) => void problems.push(`at the end: ${String(error)}`)),
    ),
  )
  return { books: loads.flatMap(({ books }) => books), rounds: done, streamEnds: streams.ends, seconds, problems }
}

/** Until every client has succeeded once. */
async function warmUp(watch: RecoveryWatch): Promise<void> {
  watch.begin()
  watch.end()
  const { missing } = await watch.recovered(RECOVERY_MS)
  if (missing.length > 0) throw new Error(`the load does not come up: ${missing.join(', ')}`)
}

/** How long after its end the struck node serves every kind of load itself; after a nats-server was struck, every node. */
async function served({ blows }: Disaster, { up }: Started, cluster: LocalCluster, loads: readonly Load[]) {
  const endedAt = performance.now()
  const until = AbortSignal.timeout(RECOVERY_MS)
  await within(up, RECOVERY_MS)
  const all = blows.some(({ target }) => target === 'nats')
  const nodes = cluster.nodes.filter((_, i) => all || blows.some(({ which }) => which === i))
  await Promise.all(
    nodes.map(async (node) => {
      if (node === undefined) throw new Error('a node is not there')
      await untilDone('/ready', until, () => assertReady(node.api, 5_000))
      await Promise.all(loads.map((load) => untilDone(load.books[0]?.kind ?? '', until, () => load.probe(node.http))))
    }),
  )
  return performance.now() - endedAt
}

async function untilDone(what: string, until: AbortSignal, step: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await step()
      return
    } catch (error) {
      if (until.aborted) throw new Error(`${what} at the node itself: ${String(error)}`, { cause: error })
      await pause(100)
    }
  }
}
