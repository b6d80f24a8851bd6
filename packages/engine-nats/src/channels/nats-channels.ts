import type {
  ChannelEngine,
  ChannelName,
  ChannelOptions,
  ChannelState,
  ChannelType,
  EngineStats,
  StoredType,
} from '@signalbox/broker-core/engine'
import { CHANNEL_TYPES, unavailable } from '@signalbox/broker-core/engine'

import { API, isApiError } from '../errors.ts'
import type { EventsStoreReader } from '../events-store/events-store-reader.ts'
import type { NatsEventsStore } from '../events-store/nats-events-store.ts'
import type { NatsEvents } from '../events.ts'
import type { Parts } from '../parts.ts'
import { ReportOnce } from '../problems.ts'
import type { NatsQueues } from '../queues/nats-queues.ts'
import type { QueueGauges } from '../queues/queue-gauges.ts'
import type { StoredChannel } from './channel-bucket.ts'
import type { ChannelCounts, CounterTable } from './counter-table.ts'
import type { LiveChannels, LiveType } from './live-channels.ts'
import { isLiveKey, liveKey } from './live-channels.ts'
import type { Peers } from './peers.ts'
import type { StoredChannels } from './stored-channels.ts'

/** The number of channels that are read at the same time. */
const PARALLEL = 64

/**
 * Lists and manages channels on NATS. The servers provide the contents; the counters are sums over all
 * nodes.
 */
export class NatsChannels implements ChannelEngine {
  readonly #parts: Parts
  readonly #queues: NatsQueues
  readonly #eventsStore: NatsEventsStore
  readonly #events: NatsEvents
  readonly #failing: FailingChannels
  readonly statistics: ChannelStatistics
  readonly forgetting: Forgetting
  #closed = false

  constructor(parts: Parts, queues: NatsQueues, eventsStore: NatsEventsStore, events: NatsEvents) {
    this.#parts = parts
    this.#failing = new FailingChannels(parts)
    this.forgetting = new Forgetting(parts.storedChannels, parts.liveChannels, parts.counterTable, parts.peers)
    this.statistics = new ChannelStatistics(parts, queues.gauges, eventsStore.reader, this.#failing)
    this.#queues = queues
    this.#eventsStore = eventsStore
    this.#events = events
  }

  exists(type: ChannelType, name: string): boolean {
    const { storedChannels, liveChannels } = this.#parts
    return isStored(type) ? storedChannels.get(type, name) !== undefined : liveChannels.has(type, name)
  }

  async names(type?: ChannelType): Promise<readonly ChannelName[]> {
    await this.#ready()
    if (type !== undefined) return this.#ordered(type)
    return (await Promise.all(CHANNEL_TYPES.map((each) => this.#ordered(each)))).flat()
  }

  async list(type?: ChannelType): Promise<readonly ChannelState[]> {
    return this.states(await this.names(type))
  }

  async states(wanted: readonly ChannelName[]): Promise<readonly ChannelState[]> {
    await this.#ready()
    const states: ChannelState[] = []
    for (let at = 0; at < wanted.length; at += PARALLEL) {
      const part = wanted.slice(at, at + PARALLEL)
      // The states of channels in memory need no promises.
      const listed = part.every(isLive)
        ? part.map(({ type, name }) => this.#liveState(type, name))
        : await Promise.all(part.map(({ type, name }) => this.#listed(type, name)))
      // A channel that was deleted in the meantime is not listed.
      states.push(...listed.filter((state) => state !== undefined))
    }
    return states
  }

  /**
   * Returns a channel's state for a list. If the servers do not answer for the channel, the state has only
   * the values that the nodes know, so a failing channel does not hide the others.
   */
  async #listed(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    if (!isStored(type)) return this.#liveState(type, name)
    const asked = await this.#failing.ask(type, name, () => this.#storedState(type, name))
    if (asked !== 'failed') return asked.answer
    const channel = this.#parts.storedChannels.get(type, name)
    return channel && stateOf(type, name, this.#parts.counters.live(channel.incarnation), 0)
  }

  #ordered(type: ChannelType): Promise<readonly ChannelName[]> {
    const { liveChannels, storedChannels } = this.#parts
    return isStored(type) ? storedChannels.ordered(type) : liveChannels.ordered(type)
  }

  async info(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    await this.#ready()
    return isStored(type) ? this.#storedState(type, name) : this.#liveState(type, name)
  }

  #liveState(type: LiveType, name: string): ChannelState | undefined {
    const { liveChannels, counters } = this.#parts
    if (!liveChannels.has(type, name)) return undefined
    const others = type === 'events' ? this.#events.wildcardSubscribers(name) : 0
    return stateOf(type, name, counters.live(liveKey(type, name)), others)
  }

  async #storedState(type: StoredType, name: string): Promise<ChannelState | undefined> {
    const channel = this.#parts.storedChannels.get(type, name)
    if (!channel) return undefined
    try {
      return await (type === 'queues' ? this.#queueState(channel) : this.#eventsStoreState(channel))
    } catch (error) {
      if (isApiError(error, API.STREAM_NOT_FOUND)) return undefined
      throw error
    }
  }

  async #queueState(channel: StoredChannel): Promise<ChannelState> {
    const [total, held] = await Promise.all([
      this.#parts.counters.total(channel.incarnation),
      this.#queues.gauges.read(channel),
    ])
    const { bytes, lastSequence, lastStoredAt } = held
    const { deadLettered, expired } = total
    return {
      ...stateOf('queues', channel.name, { ...total, incoming: lastSequence }, 0, lastStoredAt),
      queue: { ...messagesByState(held, total), bytes, deadLettered, expired },
    }
  }

  async #eventsStoreState(channel: StoredChannel): Promise<ChannelState> {
    const [total, held] = await Promise.all([
      this.#parts.counters.total(channel.incarnation),
      this.#eventsStore.reader.counts(channel),
    ])
    const { firstSequence, lastSequence, lastEver, entries, bytes, lastStoredAt } = held
    return {
      ...stateOf('events_store', channel.name, { ...total, incoming: lastEver }, 0, lastStoredAt),
      eventsStore: { firstSequence, lastSequence, entries, bytes },
    }
  }

  async create(type: ChannelType, name: string, options: ChannelOptions = {}): Promise<boolean> {
    await this.#ready()
    const { storedChannels, liveChannels } = this.#parts
    if (type === 'events_store') return this.#eventsStore.create(name, options)
    if (type === 'queues') {
      const isNew = storedChannels.isMissing('queues', name)
      await storedChannels.ensure('queues', name)
      return isNew
    }
    if (liveChannels.has(type, name)) return false
    liveChannels.ensure(type, name)
    return true
  }

  async delete(type: ChannelType, name: string): Promise<boolean> {
    await this.#ready()
    const { storedChannels, liveChannels, counters, counterTable } = this.#parts
    if (!isStored(type)) {
      if (!liveChannels.remove(type, name)) return false
      const key = liveKey(type, name)
      const subscribers = counterTable.get(key)?.subscribers ?? 0
      counterTable.forget(key)
      // The subscribers remain, and create the channel again with the next message.
      if (subscribers > 0) counterTable.change(key, (own) => (own.subscribers = subscribers))
      return true
    }
    const channel = await storedChannels.delete(type, name)
    if (!channel) return false
    await counters.forget(channel.incarnation)
    if (type === 'queues') await this.#queues.forget(channel)
    return true
  }

  async #ready(): Promise<void> {
    if (this.#closed) throw unavailable('it is closed')
    await this.#parts.connection.ready()
  }

  close(): void {
    this.#closed = true
  }
}

function isStored(type: ChannelType): type is StoredType {
  return type === 'queues' || type === 'events_store'
}

function isLive(channel: ChannelName): channel is ChannelName & { readonly type: LiveType } {
  return !isStored(channel.type)
}

function stateOf(
  type: ChannelType,
  name: string,
  { incoming, incomingBytes, outgoing, outgoingBytes, subscribers: named, lastActivity }: ChannelCounts,
  others: number,
  lastStoredAt = 0,
): ChannelState {
  const subscribers = named + others
  return {
    type,
    name,
    incoming,
    incomingBytes,
    outgoing,
    outgoingBytes,
    subscribers,
    lastActivity: subscribers > 0 ? Date.now() : Math.max(lastActivity, lastStoredAt),
  }
}

type MessagesByState = EngineStats['queues']

/** Returns the messages of a queue by their states. The counts of the nodes may be slightly older than the stored messages. */
function messagesByState(
  { messages, delayed }: { readonly messages: number; readonly delayed: number },
  { leased, retrying }: ChannelCounts,
): MessagesByState {
  const due = Math.max(0, messages - delayed)
  const inFlight = Math.max(0, Math.min(leased, due))
  const again = Math.max(0, Math.min(retrying, due - inFlight))
  return { waiting: due - inFlight - again, delayed: delayed + again, inFlight }
}

/**
 * The time for which the totals are reused, in milliseconds: there may be several scrapers, and each pass
 * asks for every stream.
 */
const SHOWN_MS = 1_000
/** The number of channels that are read at the same time. */
const PARALLEL_READS = 64

type Totals = Omit<EngineStats, 'channels' | 'sinceOpen'>

/** The totals over all channels. Concurrent readers share one pass; its result is reused for a second. */
class ChannelStatistics {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  readonly #reader: EventsStoreReader
  readonly #failing: FailingChannels
  #pass: Promise<Totals> | undefined
  #last: { readonly totals: Totals; readonly at: number } | undefined

  constructor(parts: Parts, gauges: QueueGauges, reader: EventsStoreReader, failing: FailingChannels) {
    this.#parts = parts
    this.#gauges = gauges
    this.#reader = reader
    this.#failing = failing
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async read(): Promise<EngineStats> {
    await this.#parts.connection.ready()
    const isShown = this.#last !== undefined && performance.now() - this.#last.at < SHOWN_MS
    const totals = this.#last && isShown ? this.#last.totals : await this.#share()
    const { channelLimit, counterTable } = this.#parts
    return { ...totals, channels: channelLimit.channels, sinceOpen: { ...counterTable.sinceOpen } }
  }

  #share(): Promise<Totals> {
    this.#pass ??= this.#sum().finally(() => (this.#pass = undefined))
    return this.#pass
  }

  async #sum(): Promise<Totals> {
    const { storedChannels } = this.#parts
    const queues = { waiting: 0, delayed: 0, inFlight: 0 }
    const totals = { storeBytes: 0, queues }
    const left = [...storedChannels.all('queues'), ...storedChannels.all('events_store')]
    const work = async (): Promise<void> => {
      for (let channel = left.pop(); channel; channel = left.pop()) {
        const next = channel
        const asked = await this.#failing.ask(next.type, next.name, () => this.#held(next))
        if (asked === 'failed' || !asked.answer) continue
        const { waiting, delayed, inFlight, bytes } = asked.answer
        totals.storeBytes += bytes
        queues.waiting += waiting
        queues.delayed += delayed
        queues.inFlight += inFlight
      }
    }
    await Promise.all(Array.from({ length: PARALLEL_READS }, work))
    this.#last = { totals, at: performance.now() }
    return totals
  }

  /**
   * Reads the counts of a channel; of an events store only the bytes. Resolves with undefined if it was
   * deleted in the meantime.
   */
  async #held(channel: StoredChannel): Promise<(MessagesByState & { bytes: number }) | undefined> {
    try {
      if (channel.type === 'events_store') {
        const { bytes } = await this.#reader.counts(channel)
        return { waiting: 0, delayed: 0, inFlight: 0, bytes }
      }
      const held = await this.#gauges.read(channel)
      // Leases are not stored, so the stored counters need not be read.
      return { ...messagesByState(held, this.#parts.counters.live(channel.incarnation)), bytes: held.bytes }
    } catch (error) {
      if (isApiError(error, API.STREAM_NOT_FOUND)) return undefined
      throw error
    }
  }
}

/**
 * Removes the counts of channels that no longer exist. Without it, every agent stream and every deleted
 * queue would leave a record on each node.
 */
class Forgetting {
  readonly #storedChannels: StoredChannels
  readonly #liveChannels: LiveChannels
  readonly #counterTable: CounterTable
  readonly #peers: Peers
  /**
   * Keys without a channel at the last check. Counts of another node may arrive before the channel itself
   * does.
   */
  #strays = new Set<string>()

  constructor(storedChannels: StoredChannels, liveChannels: LiveChannels, counterTable: CounterTable, peers: Peers) {
    this.#storedChannels = storedChannels
    this.#liveChannels = liveChannels
    this.#counterTable = counterTable
    this.#peers = peers
  }

  /** Removes the counts that had no channel at the last check either. */
  look(): void {
    const strays = new Set<string>()
    const isOver = (key: string, counts: ChannelCounts | undefined): boolean => {
      // Subscribers of a deleted channel remain, and create it again.
      if (this.#isKnown(key) || (isLiveKey(key) && (counts?.subscribers ?? 0) > 0)) return false
      strays.add(key)
      return this.#strays.has(key)
    }
    for (const key of this.#counterTable.keys())
      if (isOver(key, this.#counterTable.get(key))) this.#counterTable.forget(key)
    this.#peers.forgetCounts(isOver)
    this.#strays = strays
  }

  #isKnown(key: string): boolean {
    return this.#liveChannels.hasKey(key) || this.#storedChannels.byIncarnation(key) !== undefined
  }
}

/** The result of a request about one channel; `undefined` is a valid answer. */
type Asked<T> = { readonly answer: T } | 'failed'

/** Channels about which the servers do not answer. Each is reported once, and affects no other channel. */
class FailingChannels {
  readonly #parts: Parts
  readonly #reports: ReportOnce
  /** The running check that JetStream answers at all. */
  #probing: Promise<unknown> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#reports = new ReportOnce(parts.settings.onProblem)
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE when JetStream itself does not answer */
  async ask<T>(type: ChannelType, name: string, work: () => Promise<T>): Promise<Asked<T>> {
    const key = `${type} ${name}`
    try {
      const answer = await work()
      this.#reports.over(key)
      return { answer }
    } catch (error) {
      const { connection } = this.#parts
      await (this.#probing ??= connection
        .call(() => connection.manager.getAccountInfo())
        .finally(() => (this.#probing = undefined)))
      const shown = JSON.stringify(name)
      this.#reports.report(
        key,
        `the servers do not answer for ${shown} (${type}); it is listed without its counts`,
        error,
      )
      return 'failed'
    }
  }
}
