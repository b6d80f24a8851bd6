import { setTimeout as pause } from 'node:timers/promises'

import type { Disaster, Started } from './disasters.ts'
import { kindOf, strike } from './disasters.ts'
import { assertReady } from './health-checks.ts'
import { inStep } from './in-step.ts'
import { within } from './load/calls.ts'
import type { Load, Scene } from './load/load.ts'
import type { LocalCluster } from './local-cluster.ts'
import type { Recovery } from './recovery-watch.ts'

/** How one disaster went. */
export interface Outcome {
  /** Of the disaster, such as `kill node`. */
  readonly kind: string
  readonly recoveries: ReadonlyMap<string, Recovery>
  /** From the end until the struck node, or every node after a nats-server, served every kind of load itself, in milliseconds. */
  readonly itselfMs: number | undefined
  /** From the end until all nats-servers held the same again, in milliseconds; undefined where none was struck. */
  readonly inStepMs: number | undefined
  /** What did not come back in time. */
  readonly problems: readonly string[]
}

interface Place {
  readonly cluster: LocalCluster
  readonly scene: Scene
  readonly loads: readonly Load[]
  readonly hasty: boolean
}

/** As long as it may take until everything goes again, and until the nats-servers are in step, in milliseconds. */
const RECOVERY_MS = 60_000
const IN_STEP_MS = 120_000

/** Strikes once, and waits until all is well again. */
export async function strikeOnce(disaster: Disaster, { cluster, scene, loads, hasty }: Place): Promise<Outcome> {
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

/** Until the struck node serves every kind of load itself; after a nats-server was struck, until every node does. */
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
      if (node === undefined) throw new Error('a node is not there')
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
