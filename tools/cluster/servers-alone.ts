// Checks, without Signalbox, that nats-servers that freeze keep every acknowledged message: a bare JetStream client,
// one stream with three replicas, and servers that freeze.
import { setTimeout as pause } from 'node:timers/promises'

import type { JetStreamManager } from '@nats-io/jetstream'
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { connect, nanos } from '@nats-io/transport-node'
import { messageOf } from '@signalbox/broker-core/internal'
import type { NatsServer } from '@signalbox/engine-nats/testing'
import { NatsCluster } from '@signalbox/engine-nats/testing'
import { Random } from '@signalbox/testkit/random'

import { inStep } from './local-cluster.ts'

const STREAM = 'alone'
/** Messages a second of each of the three writers; each writes to a different server. */
const WRITER_RATE = 80
const PUBLISH_TIMEOUT_MS = 5_000
/**
 * A write with an unknown outcome is repeated with the same message id, well within the servers' deduplication window.
 */
const WINDOW_MS = 120_000
const NEW_LEADER_MS = 15_000
const FROZEN_MS = [5_000, 12_000] as const
/** The time between waking the old leader and freezing the new one. */
const BETWEEN_MS = 800
const IN_STEP_MS = 120_000

export interface AloneOptions {
  readonly seed: number
  readonly rounds: number
  /** The nats-server to run. */
  readonly natsServer: string | undefined
  readonly log: (line: string) => void
}

/** The differences between one server's copy of the stream and the acknowledged messages, in messages. */
export interface Copy {
  readonly server: string
  readonly messages: number
  readonly missing: number
  readonly doubled: number
  /** Messages at another sequence than the acknowledged one. */
  readonly moved: number
}

export interface AloneReport {
  readonly acknowledged: number
  readonly copies: readonly Copy[]
  readonly kept: boolean
}

/** The acknowledged sequence of each message id. */
type Acknowledged = ReadonlyMap<string, number>

/**
 * In each round the stream's leader freezes until another is elected, wakes, and the new one freezes within a second.
 * At the end every server's copy is compared with the acknowledged messages.
 */
export async function serversAlone({ seed, rounds, natsServer, log }: AloneOptions): Promise<AloneReport> {
  const random = new Random(seed)
  await using cluster = await NatsCluster.start({ binary: natsServer })
  await using writers = await Writers.start(cluster)
  for (let round = 1; round <= rounds; round++) {
    await pause(3_000)
    const old = await leader(cluster.servers)
    old.pause()
    const next = await leader(
      cluster.servers.filter((server) => server !== old),
      NEW_LEADER_MS,
    )
    old.resume()
    await pause(random.integer(0, BETWEEN_MS))
    const frozenMs = random.integer(...FROZEN_MS)
    log(`round ${round}: ${old.url} led and froze, ${next.url} leads and freezes for ${frozenMs} ms`)
    next.pause()
    await pause(frozenMs)
    next.resume()
  }
  const acknowledged = await writers.end()
  // The copies may differ permanently; each one is read in any case.
  await inStep(cluster.servers, IN_STEP_MS).catch((error: unknown) => log(messageOf(error)))
  const copies: Copy[] = []
  for (const [i, server] of cluster.servers.entries()) {
    const held = await readCopy(server, `n${i}`).catch((error: unknown) => {
      log(`the copy at ${server.url} cannot be read: ${messageOf(error)}`)
      return []
    })
    copies.push(compare(server.url, held, acknowledged))
  }
  const kept = copies.every(({ missing, doubled, moved }) => missing + doubled + moved === 0)
  return { acknowledged: acknowledged.size, copies, kept }
}

export function aloneSummary({ acknowledged, copies, kept }: AloneReport): string {
  const lines = copies.map(
    ({ server, messages, missing, doubled, moved }) =>
      `${server} holds ${messages}: ${missing} missing, ${doubled} doubled, ${moved} at another sequence than acknowledged`,
  )
  const verdict = kept ? 'every copy is complete' : 'acknowledged messages were lost'
  return [`${acknowledged} messages acknowledged`, ...lines, verdict, ''].join('\n')
}

/** Writers number their messages, and repeat those with an unknown outcome. */
class Writers implements AsyncDisposable {
  readonly #connections: readonly NatsConnection[]
  readonly #acknowledged = new Map<string, number>()
  readonly #ended = new AbortController()
  #writing: Promise<unknown> = Promise.resolve()

  private constructor(connections: readonly NatsConnection[]) {
    this.#connections = connections
  }

  static async start({ servers }: NatsCluster): Promise<Writers> {
    const connections = await Promise.all(servers.map(({ url }) => connectTo(url)))
    const writers = new Writers(connections)
    const manager = await managerOf(connections[0])
    await manager.streams.add({
      name: STREAM,
      subjects: [`${STREAM}.>`],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      num_replicas: 3,
      duplicate_window: nanos(WINDOW_MS),
    })
    writers.#writing = Promise.all(connections.map((_, i) => writers.#write(i)))
    return writers
  }

  async #write(writer: number): Promise<void> {
    const underWay: Promise<void>[] = []
    for (let n = 1; !this.#ended.signal.aborted; n++) {
      underWay.push(this.#publish(writer, `${writer}.${n}`))
      await pause(1_000 / WRITER_RATE)
    }
    await Promise.all(underWay)
  }

  async #publish(writer: number, id: string): Promise<void> {
    const giveUp = performance.now() + WINDOW_MS / 2
    for (let tries = 0; performance.now() < giveUp; tries++) {
      const connection = this.#connections[(writer + tries) % this.#connections.length]
      if (connection === undefined) throw new Error('no connection')
      try {
        const { seq } = await jetstream(connection).publish(`${STREAM}.${writer}`, id, {
          msgID: id,
          timeout: PUBLISH_TIMEOUT_MS,
          retries: 0,
        })
        // Some servers return no sequence while they still store the first message of an id.
        if (seq > 0) {
          this.#acknowledged.set(id, seq)
          return
        }
      } catch {
        // No leader, or a frozen one: the writer repeats the message at another server.
      }
      await pause(200)
    }
  }

  async end(): Promise<Acknowledged> {
    this.#ended.abort()
    await this.#writing
    return this.#acknowledged
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }
}

function connectTo(url: string): Promise<NatsConnection> {
  return connect({ servers: url, ignoreClusterUpdates: true, maxReconnectAttempts: -1, reconnectTimeWait: 250 })
}

async function managerOf(connection: NatsConnection | undefined): Promise<JetStreamManager> {
  if (connection === undefined) throw new Error('no connection')
  return jetstreamManager(connection, { timeout: 4_000 })
}

interface Jsz {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly name: string; readonly cluster?: { readonly leader?: string } }[]
  }[]
}

/** Returns the server that reports itself as the stream's leader; the servers are called n0, n1 and n2. */
async function leader(servers: readonly NatsServer[], milliseconds = IN_STEP_MS): Promise<NatsServer> {
  const until = performance.now() + milliseconds
  while (performance.now() < until) {
    for (const server of servers) {
      const { account_details: accounts = [] } = await monitored(server)
      const streams = accounts.flatMap(({ stream_detail: details = [] }) => details)
      const name = streams.find((stream) => stream.name === STREAM)?.cluster?.leader
      if (name !== undefined && name === (await nameOf(server))) return server
    }
    await pause(50)
  }
  throw new Error('no server leads the stream')
}

async function monitored(server: NatsServer): Promise<Jsz> {
  try {
    return (await server.monitor('/jsz?accounts=true&streams=true', 1_500)) as Jsz
  } catch {
    return {}
  }
}

async function nameOf(server: NatsServer): Promise<string> {
  const { server_name: name } = (await server.monitor('/varz', 1_500)) as { readonly server_name: string }
  return name
}

/** Reads a server's own copy with a consumer without replicas, which is created again until it is placed there. */
async function readCopy(
  server: NatsServer,
  name: string,
): Promise<readonly (readonly [sequence: number, id: string])[]> {
  const connection = await connectTo(server.url)
  try {
    const manager = await managerOf(connection)
    const { state } = await manager.streams.info(STREAM)
    for (let tries = 0; tries < 100; tries++) {
      const made = await manager.consumers.add(STREAM, {
        name: `read-${tries}-${name}`,
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.All,
        num_replicas: 1,
        mem_storage: true,
      })
      if (made.cluster?.leader === name) return await readAll(connection, made.name, state.messages)
      await manager.consumers.delete(STREAM, made.name)
    }
    throw new Error(`no consumer was placed on ${name}`)
  } finally {
    await connection.close()
  }
}

async function readAll(connection: NatsConnection, consumer: string, most: number): Promise<[number, string][]> {
  const held: [number, string][] = []
  const from = await jetstream(connection).consumers.get(STREAM, consumer)
  while (held.length < most) {
    const before = held.length
    for await (const message of await from.fetch({ max_messages: 1_000, expires: 2_000 })) {
      held.push([message.seq, message.string()])
    }
    if (held.length === before) break
  }
  return held
}

function compare(server: string, held: readonly (readonly [number, string])[], acknowledged: Acknowledged): Copy {
  const places = new Map<string, number[]>()
  for (const [sequence, id] of held) places.set(id, [...(places.get(id) ?? []), sequence])
  let missing = 0
  let moved = 0
  for (const [id, sequence] of acknowledged) {
    const at = places.get(id)
    if (at === undefined) missing++
    else if (!at.includes(sequence)) moved++
  }
  const doubled = [...places.values()].filter(({ length }) => length > 1).length
  return { server, messages: held.length, missing, doubled, moved }
}
