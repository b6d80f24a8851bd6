import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '@signalbox/testkit/random'

import type { Scene } from './load/load.ts'
import type { LocalCluster } from './local-cluster.ts'

const MEANS = ['kill', 'pause'] as const
const TARGETS = ['node', 'nats'] as const
/** In how many of the rounds a node and a nats-server are struck at once. */
const BOTH_SHARE = 0.25
/** How long something is down, in milliseconds: frozen ones also longer than it takes to give them up (15 s). */
const KILLED_MS = [300, 8_000] as const
const PAUSED_MS = [500, 20_000] as const

export interface Blow {
  readonly means: (typeof MEANS)[number]
  readonly target: (typeof TARGETS)[number]
  readonly which: number
}

/** One nats-server, one node, or one of each: a majority of the servers is always there, and two nodes are. */
export interface Disaster {
  readonly blows: readonly Blow[]
  readonly downMs: number
}

/** `freezeServers` false only kills nats-servers. */
export function randomDisaster(random: Random, freezeServers = true): Disaster {
  const targets = random.chance(BOTH_SHARE) ? TARGETS : [random.pick(TARGETS)]
  const blows = targets.map((target) => {
    const means = random.pick(MEANS)
    const spared = target === 'nats' && !freezeServers
    return { target, means: spared ? 'kill' : means, which: random.integer(0, 2) } as const
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

/** Strikes, waits, and makes an end of it. Resolves when what was killed is being started, and runs what was frozen. */
export async function strike({ blows, downMs }: Disaster, cluster: LocalCluster, scene: Scene): Promise<Started> {
  await Promise.all(blows.map((blow) => hit(blow, cluster, scene)))
  await pause(downMs)
  const started = blows.map((blow) => lift(blow, cluster, scene))
  return { up: Promise.all(started).then(() => undefined) }
}

export interface Started {
  /** Resolves when everything that was killed says that it is there. */
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
