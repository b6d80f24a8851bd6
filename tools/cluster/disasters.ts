import { setTimeout as pause } from 'node:timers/promises'

import type { Random } from '@signalbox/testkit/random'

import type { Scene } from '../load/mixed/clients.ts'
import type { LocalCluster } from './local-cluster.ts'

const MEANS = ['kill', 'pause'] as const
const TARGETS = ['node', 'nats'] as const
/** The share of the rounds that strike a node and a nats-server at once. */
const BOTH_SHARE = 0.25
/**
 * The outage, in milliseconds. Frozen processes also stay frozen for longer than their connections' time-out (15 s).
 */
const KILLED_MS = [300, 8_000] as const
const PAUSED_MS = [500, 20_000] as const

export interface Blow {
  readonly means: (typeof MEANS)[number]
  readonly target: (typeof TARGETS)[number]
  readonly which: number
}

/** One nats-server, one node, or one of each: a majority of the servers always runs, and so do all nodes but one. */
export interface Disaster {
  readonly blows: readonly Blow[]
  readonly downMs: number
}

export interface DisasterOptions {
  /** Freeze nats-servers in addition to killing them. @default true */
  readonly freezeServers?: boolean
  /** Kill nodes, and strike nothing else. @default false */
  readonly onlyKillNodes?: boolean
  /** The number of nodes. @default 3 */
  readonly nodes?: number | undefined
}

export function randomDisaster(random: Random, options: DisasterOptions = {}): Disaster {
  const { freezeServers = true, onlyKillNodes = false, nodes = 3 } = options
  const targets = onlyKillNodes ? (['node'] as const) : random.chance(BOTH_SHARE) ? TARGETS : [random.pick(TARGETS)]
  const blows = targets.map((target) => {
    const means = random.pick(MEANS)
    const spared = onlyKillNodes || (target === 'nats' && !freezeServers)
    const last = target === 'node' ? nodes - 1 : 2
    return { target, means: spared ? 'kill' : means, which: random.integer(0, last) } as const
  })
  const [min, max] = blows.some(({ means }) => means === 'kill') ? KILLED_MS : PAUSED_MS
  return { blows, downMs: random.integer(min, max) }
}

/** Its kind, such as `kill node` or `pause node + kill nats`. */
export function kindOf({ blows }: Disaster): string {
  return blows.map(({ means, target }) => `${means} ${target}`).join(' + ')
}

export function describe({ blows, downMs }: Disaster): string {
  const what = blows.map(({ means, target, which }) => `${means} ${target} ${which}`).join(' + ')
  return `${what} for ${(downMs / 1000).toFixed(1)} s`
}

/** Strikes, waits, and ends the disaster. Resolves when killed processes are starting and frozen ones run. */
export async function strike({ blows, downMs }: Disaster, cluster: LocalCluster, scene: Scene): Promise<Started> {
  await Promise.all(blows.map((blow) => hit(blow, cluster, scene)))
  await pause(downMs)
  const started = blows.map((blow) => lift(blow, cluster, scene))
  return { up: Promise.all(started).then(() => undefined) }
}

export interface Started {
  /** Resolves when every killed process reports that it is ready. */
  readonly up: Promise<void>
}

async function hit({ means, target, which }: Blow, cluster: LocalCluster, scene: Scene): Promise<void> {
  const server = cluster.nats.servers[which]
  if (target === 'nats') {
    scene.struckServers.begin()
    if (means === 'kill') await server?.kill()
    else server?.pause()
  } else if (means === 'kill') await cluster.killNode(which)
  else {
    scene.frozenNodes.begin()
    cluster.pauseNode(which)
  }
}

async function lift({ means, target, which }: Blow, cluster: LocalCluster, scene: Scene): Promise<void> {
  const server = cluster.nats.servers[which]
  if (target === 'nats') {
    if (means === 'kill') await server?.start()
    else server?.resume()
    scene.struckServers.end()
  } else if (means === 'kill') await cluster.startNode(which)
  else {
    cluster.resumeNode(which)
    scene.frozenNodes.end()
  }
}
