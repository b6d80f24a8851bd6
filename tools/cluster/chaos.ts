import { setTimeout as pause } from 'node:timers/promises'

import { Random } from '@signalbox/testkit/random'

import { AgentStreamLoad, STREAM_IDLE_S } from '../load/mixed/agent-streams.ts'
import { AGENT_TTL_S, AgentCallLoad, AgentProcesses, RegistrationLoad } from '../load/mixed/agents.ts'
import type { Load, Scene } from '../load/mixed/clients.ts'
import { Periods, within } from '../load/mixed/clients.ts'
import { EventsStoreLoad } from '../load/mixed/events-store.ts'
import { QueueLoad } from '../load/mixed/queues.ts'
import { RequestLoad } from '../load/mixed/requests.ts'
import type { Disaster, DisasterOptions, Started } from './disasters.ts'
import { describe, kindOf, randomDisaster, strike } from './disasters.ts'
import { assertReady, inStep, LocalCluster } from './local-cluster.ts'
import { RecoveryWatch } from './recovery-watch.ts'
import type { ChaosReport, Outcome, Round } from './report.ts'
import { roundLines } from './report.ts'

interface ChaosOptions extends DisasterOptions {
  readonly seed: number
  /** The largest number of disasters, if given. */
  readonly rounds?: number | undefined
  /** The time after which no further disaster begins, in minutes, if given. */
  readonly minutes?: number | undefined
  /** Strike again before the nats-servers are in step, which NATS does not promise to survive. @default false */
  readonly hasty?: boolean
  /** The factor by which the pauses of the clients are longer: less load. @default 1 */
  readonly pace?: number | undefined
  /** A folder for the output of nodes and nats-servers. */
  readonly logs?: string | undefined
  /** The nats-server to run. @default the installed one */
  readonly natsServer?: string | undefined
  readonly log: (line: string) => void
}

/** The time-out for the load to start, in milliseconds. */
const WARM_UP_MS = 60_000
const CALM_MS = [500, 2_000] as const

/** Kills and freezes nodes and nats-servers under mixed load, and compares the results with the acknowledged calls. */
export async function chaos({
  seed,
  rounds,
  minutes,
  hasty = false,
  pace,
  logs,
  natsServer,
  log,
  ...disasters
}: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed)
  const env = {
    CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS: String(STREAM_IDLE_S),
    CONNECTORSA2_A_AGENT_TTL_SECONDS: String(AGENT_TTL_S),
  }
  await using agents = await AgentProcesses.start()
  await using cluster = await LocalCluster.start({ env, logs, natsServer, nodes: disasters.nodes })
  const watch = new RecoveryWatch()
  const scene: Scene = {
    front: cluster.front.url,
    watch,
    frozenNodes: new Periods(),
    struckServers: new Periods(),
    pace,
  }
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
    const disaster = randomDisaster(random, disasters)
    const name = `round ${done.length + 1}, after ${Math.round((performance.now() - startedAt) / 1000)} s: ${describe(disaster)}`
    log(name)
    const cameAgain = queues.receives.again
    const outcome = await strikeOnce(disaster, { cluster, scene, loads, hasty })
    problems.push(...outcome.problems.map((problem) => `${name}: ${problem}`))
    const round = { ...outcome, again: queues.receives.again - cameAgain }
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
  return { ledgers: loads.flatMap(({ ledgers }) => ledgers), rounds: done, streamEnds: streams.ends, seconds, problems }
}

/** Waits until every client has succeeded once. */
async function warmUp(watch: RecoveryWatch): Promise<void> {
  watch.begin()
  watch.end()
  const { missing } = await watch.recovered(WARM_UP_MS)
  if (missing.length > 0) throw new Error(`the load did not start: ${missing.join(', ')}`)
}

interface Place {
  readonly cluster: LocalCluster
  readonly scene: Scene
  readonly loads: readonly Load[]
  readonly hasty: boolean
}

/** The time-outs for full recovery, and for the nats-servers to be in step, in milliseconds. */
const RECOVERY_MS = 60_000
const IN_STEP_MS = 120_000

/** Strikes once, and waits until the cluster has recovered. */
async function strikeOnce(disaster: Disaster, { cluster, scene, loads, hasty }: Place): Promise<Outcome> {
  const problems: string[] = []
  scene.watch.begin()
  const started = await strike(disaster, cluster, scene)
  scene.watch.end()
  const endedAt = performance.now()
  const took = async (work: Promise<void>): Promise<number | undefined> => {
    try {
      await work
      return performance.now() - endedAt
    } catch (error) {
      problems.push(String(error))
      return undefined
    }
  }
  const struckServers = disaster.blows.some(({ target }) => target === 'nats')
  const [{ recoveries, missing }, itselfMs, inStepMs] = await Promise.all([
    scene.watch.recovered(RECOVERY_MS),
    took(served(disaster, started, cluster, loads)),
    struckServers && !hasty ? took(inStep(cluster.nats.servers, IN_STEP_MS)) : undefined,
  ])
  problems.push(...missing.map((client) => `${client} is still down`))
  return { kind: kindOf(disaster), recoveries, itselfMs, inStepMs, problems }
}

/**
 * Waits until the struck node serves every kind of load directly; after a nats-server was struck, until every node
 * does.
 */
async function served(
  { blows }: Disaster,
  { up }: Started,
  cluster: LocalCluster,
  loads: readonly Load[],
): Promise<void> {
  const until = AbortSignal.timeout(RECOVERY_MS)
  await within(up, RECOVERY_MS)
  const all = blows.some(({ target }) => target === 'nats')
  const nodes = cluster.nodes.filter((_, i) => all || blows.some(({ which }) => which === i))
  await Promise.all(
    nodes.map(async (node) => {
      if (node === undefined) throw new Error('a node is not running')
      await untilDone('/ready', until, () => assertReady(node.api, 5_000))
      await Promise.all(loads.map((load) => untilDone(load.ledgers[0]?.kind ?? '', until, () => load.probe(node.http))))
    }),
  )
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
