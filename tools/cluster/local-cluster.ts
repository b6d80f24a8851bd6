import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { NatsCluster } from '@signalbox/engine-nats/testing'

import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { readySignalbox, spawnSignalbox } from '../harness/signalbox-server.ts'
import { Front } from './front.ts'
import { HealthChecks } from './health-checks.ts'

export interface LocalClusterOptions {
  /** @default 3 */
  readonly nodes?: number | undefined
  /** Additional settings of the nodes. */
  readonly env?: Readonly<Record<string, string>>
  /** A folder for the output of nodes and nats-servers. */
  readonly logs?: string | undefined
  /** The nats-server to run. @default the installed one */
  readonly natsServer?: string | undefined
}

/** Three nats-servers, some Signalbox nodes in separate processes, and a balancer in front of them, all on loopback. */
export class LocalCluster implements AsyncDisposable {
  readonly nats: NatsCluster
  readonly front: Front
  readonly #nodes: (SignalboxServer | undefined)[]
  readonly #starting = new Set<MeasuredProcess>()
  readonly #health: HealthChecks
  readonly #env: Readonly<Record<string, string>>
  readonly #logs: string | undefined

  private constructor(
    nats: NatsCluster,
    nodes: (SignalboxServer | undefined)[],
    front: Front,
    health: HealthChecks,
    { env = {}, logs }: LocalClusterOptions,
  ) {
    this.nats = nats
    this.#nodes = nodes
    this.front = front
    this.#health = health
    this.#env = env
    this.#logs = logs
  }

  static async start({
    nodes: count = 3,
    env = {},
    logs,
    natsServer,
  }: LocalClusterOptions = {}): Promise<LocalCluster> {
    if (logs !== undefined) await mkdir(logs, { recursive: true })
    const nats = await NatsCluster.start({ binary: natsServer, logs })
    const nodes: (SignalboxServer | undefined)[] = []
    const there = (): SignalboxServer[] => nodes.filter((node) => node !== undefined)
    const health = new HealthChecks(() => there().map(({ api }) => api))
    const front = await Front.start(() => {
      const ready = there().filter(({ api }) => health.isReady(api))
      // If no node is ready, any node may be the next one.
      return (ready.length > 0 ? ready : there()).map(({ http }) => http)
    })
    const cluster = new LocalCluster(nats, nodes, front, health, { env, logs })
    try {
      for (let i = 0; i < count; i++) await cluster.startNode(i)
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  get nodes(): readonly (SignalboxServer | undefined)[] {
    return this.#nodes
  }

  async startNode(i: number): Promise<void> {
    const process = spawnSignalbox({
      storePath: '/nonexistent',
      instrumented: false,
      env: { ENGINE: 'nats', NATS_SERVERS: this.nats.urls.join(','), NATS_REPLICAS: '3', ...this.#env },
    })
    this.#starting.add(process)
    try {
      this.#nodes[i] = await readySignalbox(process)
    } finally {
      this.#starting.delete(process)
    }
  }

  async killNode(i: number): Promise<void> {
    const node = this.#nodes[i]
    this.#nodes[i] = undefined
    await node?.process.kill()
    await this.#keepLog(i, node)
  }

  async #keepLog(i: number, node: SignalboxServer | undefined): Promise<void> {
    if (this.#logs !== undefined && node) await appendFile(join(this.#logs, `node-${i}.log`), node.process.output)
  }

  /** Freezes a node: its connections stay open, and it does not answer. */
  pauseNode(i: number): void {
    this.#nodes[i]?.process.child.kill('SIGSTOP')
  }

  resumeNode(i: number): void {
    this.#nodes[i]?.process.child.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#health[Symbol.dispose]()
    await this.front[Symbol.asyncDispose]()
    await Promise.all([...this.#starting].map((process) => process.kill()))
    await Promise.all(
      this.#nodes.map(async (node, i) => {
        await node?.process[Symbol.asyncDispose]()
        await this.#keepLog(i, node)
      }),
    )
    await this.nats[Symbol.asyncDispose]()
  }
}
