import type {
  Engine,
  EngineCapabilities,
  EngineHealth,
  EngineLimits,
  EngineStats,
  EngineNode,
  OtherNode,
  SettingsEntry,
} from '@signalbox/broker-core/engine'
import {
  compactProblem,
  isBrokerError,
  MESSAGE_ENVELOPE_BYTES,
  SettingsTable,
  unavailable,
} from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import { JetStreamApiError } from '@nats-io/jetstream'
import { setTimeout as pause } from 'node:timers/promises'

import { ChannelBucket } from './channels/channel-bucket.ts'
import { CounterTable } from './channels/counter-table.ts'
import { Counters } from './channels/counters.ts'
import type { LiveChange } from './channels/live-channels.ts'
import { LiveChannels } from './channels/live-channels.ts'
import { NatsChannels } from './channels/nats-channels.ts'
import { Peers } from './channels/peers.ts'
import { ChannelLimit, StoredChannels } from './channels/stored-channels.ts'
import { Connection } from './connection.ts'
import { API, NatsEngineError } from './errors.ts'
import { NatsEventsStore } from './events-store/nats-events-store.ts'
import { NatsEvents } from './events.ts'
import { Housekeeping } from './housekeeping.ts'
import { KeyedRecords } from './keyed-records.ts'
import type { NatsEngineOptions, Settings } from './options.ts'
import { settingsOf } from './options.ts'
import type { Parts } from './parts.ts'
import { failure, ReportOnce } from './problems.ts'
import { Publisher } from './publisher.ts'
import { Pulls } from './pulls.ts'
import { NatsQueues } from './queues/nats-queues.ts'
import { NatsRequests } from './requests/nats-requests.ts'
import { ServerClock, ServerFeatures } from './servers.ts'
import { StoredMessages } from './stored-messages.ts'
import { GROUP_PARTITIONS, MAX_DELAYED, Streams } from './streams.ts'
import { Subjects, unique } from './subjects.ts'

const CAPABILITIES = {
  fsyncBeforeAck: false,
  exactNackOrder: false,
  peekHidesLeased: false,
  leaseSurvivesNode: true,
  remoteStorage: true,
  exactConsumerLimits: false,
  maxDelayedPerQueue: MAX_DELAYED,
  deduplicationPerMessage: false,
  groupPartitions: GROUP_PARTITIONS,
} as const

/**
 * The numbers of streams that a node creates at the same time. A server alone makes a stream before it reads the next
 * messages of the connection; servers of a cluster wait for each other meanwhile.
 */
const CREATIONS_ALONE = 1
const CREATIONS_IN_CLUSTER = 32

/** The maximum number of queues with groups: each has 17 consumers, which the servers replicate. */
const MAX_GROUPED = 100

const IDLE_MS = 60_000
/** The pause between tries to open, in milliseconds. */
const RETRY_MS = 1_000

/** The cluster engine: any number of nodes over one NATS JetStream cluster. */
export class NatsEngine implements Engine, AsyncDisposable {
  readonly name = 'nats'
  readonly capabilities: EngineCapabilities
  readonly limits: EngineLimits
  readonly queues: NatsQueues
  readonly settings: SettingsTable
  readonly events: NatsEvents
  readonly eventsStore: NatsEventsStore
  readonly requests: NatsRequests
  readonly channels: NatsChannels
  readonly housekeeping: Housekeeping
  readonly #parts: Parts
  readonly #idle: NodeJS.Timeout
  #closing: Promise<void> | undefined

  constructor(parts: Parts, queues: NatsQueues, housekeeping: Housekeeping) {
    const { settings, connection, liveChannels, features } = parts
    this.#parts = parts
    this.settings = parts.channelSettings
    // The state at the start: features that upgraded servers offer later are used, but not declared.
    this.capabilities = Object.freeze({ ...CAPABILITIES, expiryWithoutNode: features.messageTtl })
    this.limits = {
      maxMessageBytes: Math.min(settings.maxMessageBytes, connection.maxPayload - MESSAGE_ENVELOPE_BYTES),
      maxChannels: settings.maxChannels,
      creationsAtOnce: settings.replicas === 1 ? CREATIONS_ALONE : CREATIONS_IN_CLUSTER,
    }
    this.queues = queues
    this.events = new NatsEvents(parts)
    this.eventsStore = new NatsEventsStore(parts)
    this.requests = new NatsRequests(parts)
    this.channels = new NatsChannels(parts, queues, this.eventsStore, this.events)
    this.housekeeping = housekeeping
    this.#idle = setInterval(() => {
      features.refresh(() => housekeeping.start())
      liveChannels.forgetIdleReserved((type, name) =>
        type === 'events' ? this.events.isUsed(name) : this.requests.isUsed(type, name),
      )
      this.channels.forgetting.look()
    }, IDLE_MS)
    this.#idle.unref()
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async settingProblem(entry: SettingsEntry): Promise<string | undefined> {
    if (entry.type === 'queues') return this.#groupsProblem(this.settings.with(entry))
    const stores = this.#parts.storedChannels.all('events_store').filter(({ options }) => !options.compacted)
    const { reader } = this.eventsStore
    return compactProblem(this.settings, entry, stores, async (store) => (await reader.counts(store)).entries)
  }

  /** Returns the reason why queues cannot get the groups of other settings, or lose theirs; undefined if they can. */
  async #groupsProblem(next: SettingsTable): Promise<string | undefined> {
    if (!next.uses('groups') && !this.settings.uses('groups')) return undefined
    let grouped = 0
    for (const channel of this.#parts.storedChannels.all('queues')) {
      const { name } = channel
      const willHave = next.of('queues', name).groups !== undefined
      if (willHave && ++grouped > MAX_GROUPED) {
        return `more than ${MAX_GROUPED} queues would have groups; ${MAX_GROUPED} is the maximum`
      }
      if (willHave === (this.settings.of('queues', name).groups !== undefined)) continue
      const { messages } = await this.queues.gauges.read(channel)
      if (messages > 0) {
        return `the queue ${JSON.stringify(name)} is not empty (messages: ${messages}), and gets or loses groups only while it is; receive or purge them`
      }
    }
    return undefined
  }

  async health(): Promise<EngineHealth> {
    const { connection, clock } = this.#parts
    if (this.#closing) return { ok: false, checks: [{ name: 'connection', ok: false, detail: 'closed' }] }
    const connected = connection.connected
    const detail = connected
      ? `connected to ${connection.nc.getServer()}, nats-server ${connection.serverVersion}`
      : 'the connection to NATS is lost'
    const checks = [{ name: 'connection', ok: connected, detail }]
    if (connected) {
      try {
        await connection.manager.getAccountInfo()
        checks.push({ name: 'jetstream', ok: true, detail: 'answers' })
      } catch (error) {
        checks.push({ name: 'jetstream', ok: false, detail: messageOf(error) })
      }
    }
    const ok = checks.every((check) => check.ok)
    // The clock does not affect `ok`, because a restart of the node does not correct it.
    if (connected) checks.push(await clock.check())
    return { ok, checks }
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async stats(): Promise<EngineStats> {
    if (this.#closing) throw unavailable('it is closed')
    return this.channels.statistics.read()
  }

  get node(): EngineNode {
    const { node, clock } = this.#parts
    return { id: node, clockSkewed: clock.isSkewed }
  }

  otherNodes(): readonly OtherNode[] {
    return this.#parts.peers.describe()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    const { connection, clock, storedChannels, peers, counters, pulls, settings } = this.#parts
    clearInterval(this.#idle)
    clock.stop()
    this.housekeeping.stop()
    this.channels.close()
    this.events.close()
    this.requests.close()
    const failed = (error: unknown): void => settings.onProblem(failure('closing the engine', error))
    this.queues.end()
    await this.queues.groupsIdle()
    await this.eventsStore.close().catch(failed)
    storedChannels.stop()
    // Before the queues return the deliveries without a receiver: some arrive until then.
    await pulls.close()
    await this.queues.close().catch(failed)
    if (connection.connected) await counters.stop().catch(failed)
    peers.stop()
    if (connection.connected) await connection.nc.flush().catch(() => {})
    await connection.close()
  }
}

/**
 * Connects a node to the cluster. Resolves when it knows every channel and can serve.
 * @throws NatsEngineError OPTION_INVALID, SERVERS_UNREACHABLE, SERVERS_REFUSED, JETSTREAM_MISSING
 */
export async function openNatsEngine(options: NatsEngineOptions): Promise<NatsEngine> {
  const settings = settingsOf(options)
  for (let waiting = false; ;) {
    settings.signal?.throwIfAborted()
    try {
      const engine = await connectAndOpen(settings)
      if (waiting) settings.onProblem({ kind: 'healed', message: 'JetStream is available' })
      return engine
    } catch (error) {
      if (error instanceof NatsEngineError || settings.signal?.aborted === true) throw error
      const message = `connected to NATS, but JetStream is not available (${reasonOf(error)}); start nats-server with -js, enable JetStream for this account, and start as many servers as there are replicas`
      // A cluster that is just starting has no leader yet.
      if (!settings.waitForServers || !mayPass(error)) {
        throw new NatsEngineError('JETSTREAM_MISSING', message, { cause: error })
      }
      if (!waiting) settings.onProblem({ kind: 'disconnected', message: `${message}; waiting`, error })
      waiting = true
    }
    // An abort ends the wait; the check at the top of the loop throws its reason.
    await pause(RETRY_MS, undefined, { signal: settings.signal }).catch(() => {})
  }
}

/** Returns the message of JetStream instead of the message of ENGINE_UNAVAILABLE. */
function reasonOf(error: unknown): string {
  return isBrokerError(error) ? messageOf(error.cause ?? error) : messageOf(error)
}

/** Returns true when the failure may end without a change of the configuration. */
function mayPass(error: unknown): boolean {
  const cause = isBrokerError(error) ? error.cause : error
  if (!(cause instanceof JetStreamApiError) || cause.code === API.NO_SUITABLE_PEERS) return true
  return cause.status === 503 && cause.code !== API.NOT_ENABLED_FOR_ACCOUNT
}

async function connectAndOpen(settings: Settings): Promise<NatsEngine> {
  const connection = await Connection.open(settings)
  try {
    return await open(settings, connection)
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function open(settings: Settings, connection: Connection): Promise<NatsEngine> {
  const { onProblem } = settings
  const node = unique()
  const subjects = new Subjects(settings.prefix)
  const features = await ServerFeatures.read(connection, settings)
  const channelSettings = new SettingsTable()
  const streams = new Streams(connection, subjects, settings, channelSettings, features)
  const publisher = new Publisher(connection, settings.requestTimeoutMs)
  const { keyedRecords, recent } = await KeyedRecords.open(connection, publisher, settings)
  const clock = await ServerClock.start(keyedRecords, subjects, onProblem)
  const messages = new StoredMessages(connection, settings)
  const channelLimit = new ChannelLimit(settings.maxChannels)
  const pulls = new Pulls(connection)
  const bucket = await ChannelBucket.open(connection, subjects, publisher, messages, pulls, settings)
  const storedChannels = new StoredChannels(connection, subjects, streams, bucket, channelLimit, onProblem)
  storedChannels.onChange(({ stream }, exists) => {
    if (!exists) messages.forget(stream)
  })
  const liveChannels = new LiveChannels(channelLimit, new ReportOnce(onProblem))
  const counterTable = new CounterTable()
  const live = {
    onChange: (change: LiveChange) => liveChannels.hear(change),
    all: () => liveChannels.all,
  }
  const peers = new Peers(connection, subjects, node, settings.node, counterTable, live, onProblem)
  const isStored = (key: string): boolean => storedChannels.byIncarnation(key) !== undefined
  const counters = new Counters(connection, keyedRecords, subjects, node, counterTable, peers, isStored, onProblem)
  liveChannels.start((change) => peers.announce(change))
  await storedChannels.sync()
  const parts: Parts = {
    node,
    settings,
    channelSettings,
    connection,
    clock,
    features,
    subjects,
    streams,
    channelLimit,
    storedChannels,
    liveChannels,
    counterTable,
    counters,
    peers,
    keyedRecords,
    recent,
    publisher,
    messages,
    pulls,
  }
  const queues = await NatsQueues.open(parts)
  const housekeeping = new Housekeeping(streams, storedChannels, channelSettings, queues.gauges, onProblem)
  const engine = new NatsEngine(parts, queues, housekeeping)
  peers.start()
  counters.start()
  connection.onReconnect(() => {
    peers.hello()
    storedChannels.resync()
  })
  warnings(settings, connection)
  engine.housekeeping.start()
  return engine
}

function warnings({ replicas, maxMessageBytes, onProblem }: Settings, { maxPayload }: Connection): void {
  if (replicas === 1) {
    onProblem({
      kind: 'warning',
      message:
        'messages are stored by one NATS server only; a crash of its machine may lose the latest ones. Set NATS_REPLICAS to 3',
    })
  }
  if (maxPayload - MESSAGE_ENVELOPE_BYTES < maxMessageBytes) {
    onProblem({
      kind: 'warning',
      message: `NATS accepts messages of at most ${maxPayload} bytes; raise max_payload in its configuration to accept ${maxMessageBytes}`,
    })
  }
}
