import type {
  ChannelEngine,
  ChannelName,
  ChannelOptions,
  ChannelState,
  ChannelType,
  StoredType,
} from '@signalbox/broker-core/engine'
import { CHANNEL_TYPES, unavailable } from '@signalbox/broker-core/engine'
import { inTurns, sortInTurns } from '@signalbox/broker-core/internal'

import { API, isApiError } from '../errors.ts'
import type { NatsEventsStore } from '../events-store/nats-events-store.ts'
import type { Parts } from '../parts.ts'
import type { NatsQueues } from '../queues/nats-queues.ts'
import type { NatsEvents } from '../events.ts'
import { FailingChannels } from './failing-channels.ts'
import type { ChannelCounts } from './counter-table.ts'
import { Forgetting } from './forgetting.ts'
import { liveKey } from './live-channels.ts'
import { ChannelStatistics } from './channel-statistics.ts'
import type { StoredChannel } from './stored-channel.ts'

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
    const names: ChannelName[] = []
    for (const each of type === undefined ? CHANNEL_TYPES : [type]) {
      await inTurns(await sortInTurns(this.#names(each)), (name) => names.push({ type: each, name }))
    }
    return names
  }

  async list(type?: ChannelType): Promise<readonly ChannelState[]> {
    return this.states(await this.names(type))
  }

  async states(wanted: readonly ChannelName[]): Promise<readonly ChannelState[]> {
    await this.#ready()
    const states: ChannelState[] = []
    for (let at = 0; at < wanted.length; at += PARALLEL) {
      const part = await Promise.all(wanted.slice(at, at + PARALLEL).map((each) => this.#listed(each.type, each.name)))
      // A channel that was deleted in the meantime is not listed.
      states.push(...part.filter((state) => state !== undefined))
    }
    return states
  }

  /**
   * Returns a channel's state for a list. If the servers do not answer for the channel, the state has only
   * the values that the nodes know, so a failing channel does not hide the others.
   */
  async #listed(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    const asked = await this.#failing.ask(type, name, () => this.#state(type, name))
    if (asked !== 'failed') return asked.answer
    const channel = isStored(type) ? this.#parts.storedChannels.get(type, name) : undefined
    return channel && stateOf(type, name, this.#parts.counters.live(channel.incarnation), 0)
  }

  #names(type: ChannelType): string[] {
    if (!isStored(type)) return this.#parts.liveChannels.names(type)
    return this.#parts.storedChannels.all(type).map(({ name }) => name)
  }

  async info(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    await this.#ready()
    return this.#state(type, name)
  }

  async #state(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    const { storedChannels, liveChannels, counters } = this.#parts
    if (!isStored(type)) {
      if (!liveChannels.has(type, name)) return undefined
      const others = type === 'events' ? this.#events.wildcardSubscribers(name) : 0
      return stateOf(type, name, await counters.total(liveKey(type, name)), others)
    }
    const channel = storedChannels.get(type, name)
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
    const { messages, delayed, bytes, lastSequence, lastStoredAt } = held
    const inFlight = Math.max(0, Math.min(total.leased, messages - delayed))
    const { deadLettered, expired } = total
    return {
      ...stateOf('queues', channel.name, { ...total, incoming: lastSequence }, 0, lastStoredAt),
      queue: { waiting: messages - delayed - inFlight, delayed, inFlight, bytes, deadLettered, expired },
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
