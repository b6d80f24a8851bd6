import { appendFile, mkdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

import type { NatsServer } from '@signalbox/engine-nats/testing'
import { NatsCluster } from '@signalbox/engine-nats/testing'
import type { LoopbackServer } from '@signalbox/testkit/loopback'
import { serveSockets } from '@signalbox/testkit/loopback'
import type { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { readySignalbox, spawnSignalbox } from '@signalbox/testkit/signalbox-server'

interface LocalClusterOptions {
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

/** A balancer: each connection goes to the next node that accepts it, and is cut when its node dies. */
export class Front implements AsyncDisposable {
  readonly #nodes: () => readonly string[]
  #server: LoopbackServer | undefined
  #next = 0

  private constructor(nodes: () => readonly string[]) {
    this.#nodes = nodes
  }

  /** `nodes` returns the addresses of the running nodes, `http://host:port`. */
  static async start(nodes: () => readonly string[]): Promise<Front> {
    const front = new Front(nodes)
    front.#server = await serveSockets((client) => {
      client.on('error', () => client.destroy())
      front.#join(client, nodes().length)
    })
    return front
  }

  get url(): string {
    return this.#server?.url ?? ''
  }

  #join(client: Socket, tries: number): void {
    const nodes = this.#nodes()
    const node = nodes[this.#next++ % Math.max(1, nodes.length)]
    if (node === undefined || tries === 0) {
      client.destroy()
      return
    }
    const { hostname, port } = new URL(node)
    const upstream = connect(Number(port), hostname)
    let joined = false
    upstream.once('connect', () => {
      joined = true
      client.pipe(upstream).pipe(client)
    })
    upstream.on('error', () => {
      upstream.destroy()
      if (joined) client.destroy()
      else this.#join(client, tries - 1)
    })
    upstream.once('close', () => joined && client.destroy())
    client.once('close', () => upstream.destroy())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }
}

/** Interval and time-out of the checks, in milliseconds. */
const EVERY_MS = 250
const ANSWER_MS = 500

/** Resolves when the node with this management address reports that it is ready. */
export async function assertReady(api: string, milliseconds: number): Promise<void> {
  const signal = AbortSignal.timeout(milliseconds)
  const response = await fetch(`${api}/ready`, { headers: { connection: 'close' }, signal })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`not ready: HTTP ${response.status}`)
}

/** Checks the `/ready` of the nodes periodically, as a balancer does. */
class HealthChecks implements Disposable {
  readonly #apis: () => readonly string[]
  readonly #unready = new Set<string>()
  readonly #timer: NodeJS.Timeout

  /** `apis` returns the management addresses of the existing nodes. */
  constructor(apis: () => readonly string[]) {
    this.#apis = apis
    this.#timer = setInterval(() => {
      for (const api of this.#apis()) void this.#check(api)
    }, EVERY_MS).unref()
  }

  /** A node counts as ready until a check fails. */
  isReady(api: string): boolean {
    return !this.#unready.has(api)
  }

  async #check(api: string): Promise<void> {
    try {
      await assertReady(api, ANSWER_MS)
      this.#unready.delete(api)
    } catch {
      this.#unready.add(api)
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

const MONITOR_MS = 2_000
const AGAIN_MS = 200

/** The part of `/jsz` about the streams that a server stores. */
interface Jsz {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly name: string; readonly state: { readonly last_seq: number } }[]
  }[]
}

/**
 * Resolves when every server reports that it is healthy and stores the newest data of any server at the time of the
 * call; only then may the next one be struck. Rejects after `milliseconds`.
 */
export async function inStep(servers: readonly NatsServer[], milliseconds: number): Promise<void> {
  const until = performance.now() + milliseconds
  const due = await trying(until, () => furthest(servers))
  await trying(until, async () => {
    await Promise.all(servers.map((server) => server.monitor('/healthz', MONITOR_MS)))
    for (const server of servers) {
      const held = await lastSequences(server)
      for (const [stream, last] of held) {
        if (last < (due.get(stream) ?? 0))
          throw new Error(`${stream} is at ${last} of ${due.get(stream)} at ${server.url}`)
      }
    }
  })
}

/** Returns the last sequence of each existing stream, on any server. */
async function furthest(servers: readonly NatsServer[]): Promise<ReadonlyMap<string, number>> {
  const most = new Map<string, number>()
  for (const server of servers) {
    for (const [stream, last] of await lastSequences(server)) most.set(stream, Math.max(last, most.get(stream) ?? 0))
  }
  return most
}

async function lastSequences(server: NatsServer): Promise<ReadonlyMap<string, number>> {
  const { account_details: accounts = [] } = (await server.monitor(
    '/jsz?accounts=true&streams=true',
    MONITOR_MS,
  )) as Jsz
  const streams = accounts.flatMap(({ stream_detail: details = [] }) => details)
  return new Map(streams.map(({ name, state }) => [name, state.last_seq]))
}

async function trying<T>(until: number, step: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (performance.now() > until) throw new Error(`servers are not in step: ${String(error)}`, { cause: error })
      await pause(AGAIN_MS)
    }
  }
}
