import { NatsCluster } from '@signalbox/engine-nats/testing'

import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import { Front } from './front.ts'

/** Three nats-servers, some Signalbox nodes as processes of their own, and a balancer before them, all on loopback. */
export class LocalCluster implements AsyncDisposable {
  readonly nats: NatsCluster
  readonly front: Front
  readonly #nodes: (SignalboxServer | undefined)[]

  private constructor(nats: NatsCluster, nodes: (SignalboxServer | undefined)[], front: Front) {
    this.nats = nats
    this.#nodes = nodes
    this.front = front
  }

  static async start(count = 3): Promise<LocalCluster> {
    const nats = await NatsCluster.start()
    const nodes: (SignalboxServer | undefined)[] = []
    const front = await Front.start(() => nodes.flatMap((node) => (node ? [node.http] : [])))
    const cluster = new LocalCluster(nats, nodes, front)
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
    this.#nodes[i] = await startSignalbox({
      storePath: '/nonexistent',
      instrumented: false,
      env: { ENGINE: 'nats', NATS_SERVERS: this.nats.urls.join(','), NATS_REPLICAS: '3' },
    })
  }

  /** kill -9 */
  async killNode(i: number): Promise<void> {
    const node = this.#nodes[i]
    this.#nodes[i] = undefined
    await node?.process.kill()
  }

  /** Freezes a node: its connections stay, nothing answers. */
  pauseNode(i: number): void {
    this.#nodes[i]?.process.child.kill('SIGSTOP')
  }

  resumeNode(i: number): void {
    this.#nodes[i]?.process.child.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.front[Symbol.asyncDispose]()
    const nodes = this.#nodes.filter((node) => node !== undefined)
    await Promise.all(nodes.map((node) => node.process[Symbol.asyncDispose]()))
    await this.nats[Symbol.asyncDispose]()
  }
}
