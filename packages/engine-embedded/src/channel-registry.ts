import type { ChannelName, ChannelState, ChannelType, StoredType } from '@signalbox/broker-core/engine'
import { BrokerError, isReservedChannel } from '@signalbox/broker-core/engine'
import { ChannelMap } from '@signalbox/broker-core/internal'

import type { StoredChannel } from './store/stored-channel.ts'
import type { ActivityOperation, ChannelActivity } from './writer/operations.ts'
import type { GroupReply } from './writer/thread-messages.ts'

/**
 * A channel in the main thread's memory. For stored types it mirrors the channel's row; every group commit updates it.
 */
export interface LiveChannel {
  readonly type: ChannelType
  readonly name: string
  /** The id of the row; 0 for types that are not stored. */
  id: number
  incoming: number
  incomingBytes: number
  /** Deliveries. Counted here; the writer stores the count with the next group. */
  outgoing: number
  outgoingBytes: number
  lastActivity: number
  subscribers: number
  entries: number
  delayed: number
  bytes: number
  /** Leased messages, including those that are being settled. */
  inFlight: number
  /** Messages that are held for a delay, at their positions among the others. */
  backingOff: number
  deadLettered: number
  expired: number
  firstSequence: number
  lastSequence: number
  compacted: boolean
}

/** The time after which an unused channel of the broker is removed, if its type is not stored, in ms. */
const RESERVED_IDLE_MS = 5 * 60_000

/** All channels of all five types. The only place that counts them. */
export class ChannelRegistry {
  readonly #byType: Record<ChannelType, ChannelMap<LiveChannel>>
  readonly #maxChannels: number
  readonly #now: () => number
  readonly #onAppear: (channel: LiveChannel) => void
  /** Users' channels that running operations may create, with the number of these operations. */
  readonly #expected = new Map<string, number>()
  readonly #changedActivity = new Set<LiveChannel>()
  #userChannels = 0
  readonly totals = { entries: 0, delayed: 0, inFlight: 0, backingOff: 0 }
  /** The counters of all queues since {@link startCounting}. */
  readonly sinceOpen = { deadLettered: 0, redelivered: 0, expired: 0, retried: 0 }
  #counting = false

  /** @param onAppear Called for every new channel, to count the subscribers that it may have already */
  constructor(maxChannels: number, now: () => number, onAppear: (channel: LiveChannel) => void) {
    this.#maxChannels = maxChannels
    this.#now = now
    this.#onAppear = onAppear
    this.#byType = {
      queues: new ChannelMap('queues'),
      events: new ChannelMap('events'),
      events_store: new ChannelMap('events_store'),
      commands: new ChannelMap('commands'),
      queries: new ChannelMap('queries'),
    }
  }

  /** The number of users' channels of all types, which the limit applies to and operators see. */
  get userChannels(): number {
    return this.#userChannels
  }

  get(type: ChannelType, name: string): LiveChannel | undefined {
    return this.#byType[type].get(name)
  }

  /** Returns the channels of a type in the order of their names. */
  ordered(type: ChannelType): Promise<readonly ChannelName[]> {
    return this.#byType[type].ordered()
  }

  /** Returns the channels ordered by name. */
  list(type: ChannelType): LiveChannel[] {
    return [...this.#byType[type].values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  all(type: ChannelType): IterableIterator<LiveChannel> {
    return this.#byType[type].values()
  }

  /**
   * Returns a channel of a type that is not stored; creates it if necessary.
   * @throws BrokerError CHANNEL_LIMIT
   */
  ensure(type: 'events' | 'commands' | 'queries', name: string): LiveChannel {
    const existing = this.get(type, name)
    if (existing) return existing
    if (!isReservedChannel(name)) this.#checkLimit()
    return this.#add(type, name, 0)
  }

  /**
   * Runs an operation that creates the channel if it does not exist, and reserves capacity for it.
   * @throws BrokerError CHANNEL_LIMIT
   */
  creating<T>(type: StoredType, name: string, operation: () => Promise<T>): Promise<T> {
    // The most frequent case, without another promise.
    if (this.get(type, name)) return operation()
    return this.#creating(type, name, operation)
  }

  async #creating<T>(type: StoredType, name: string, operation: () => Promise<T>): Promise<T> {
    if (isReservedChannel(name)) return operation()
    const key = `${type} ${name}`
    const operations = this.#expected.get(key)
    if (operations === undefined) this.#checkLimit()
    this.#expected.set(key, (operations ?? 0) + 1)
    try {
      return await operation()
    } finally {
      const left = this.#expected.get(key)
      if (left !== undefined && left > 1) this.#expected.set(key, left - 1)
      else this.#expected.delete(key)
    }
  }

  #checkLimit(): void {
    if (this.#userChannels + this.#expected.size < this.#maxChannels) return
    throw new BrokerError(
      'CHANNEL_LIMIT',
      `the limit of ${this.#maxChannels} channels is reached; delete some, or raise the limit`,
      { limit: this.#maxChannels },
    )
  }

  #add(type: ChannelType, name: string, id: number): LiveChannel {
    const channel: LiveChannel = {
      type,
      name,
      id,
      incoming: 0,
      incomingBytes: 0,
      outgoing: 0,
      outgoingBytes: 0,
      lastActivity: 0,
      subscribers: 0,
      entries: 0,
      delayed: 0,
      bytes: 0,
      inFlight: 0,
      backingOff: 0,
      deadLettered: 0,
      expired: 0,
      firstSequence: 0,
      lastSequence: 0,
      compacted: false,
    }
    this.#byType[type].set(name, channel)
    if (!isReservedChannel(name)) this.#userChannels++
    this.#onAppear(channel)
    return channel
  }

  /** Removes a channel; returns false if it does not exist. */
  remove(type: ChannelType, name: string): boolean {
    const channel = this.get(type, name)
    if (!channel) return false
    this.#byType[type].delete(name)
    this.#changedActivity.delete(channel)
    if (!isReservedChannel(name)) this.#userChannels--
    if (type === 'queues') {
      this.totals.entries -= channel.entries
      this.totals.delayed -= channel.delayed
      this.setHeld(channel, 0, 0)
    }
    return true
  }

  /** Applies the changes of a group. Returns the channels that were removed, or created again with another id. */
  apply({ changed, removed }: Pick<GroupReply, 'changed' | 'removed'>): { type: StoredType; name: string }[] {
    const gone: { type: StoredType; name: string }[] = []
    for (const { type, name, id } of removed) {
      // The main thread does not know a channel that the same group created and removed.
      if (this.get(type, name)) gone.push({ type, name })
      if (this.get(type, name)?.id !== id) continue
      this.remove(type, name)
    }
    for (const stored of changed) {
      const known = this.get(stored.type, stored.name)
      if (known && known.id !== stored.id) {
        this.remove(stored.type, stored.name)
        gone.push({ type: stored.type, name: stored.name })
      }
      this.#update(stored)
    }
    return gone
  }

  #update(stored: StoredChannel): void {
    let channel = this.get(stored.type, stored.name)
    if (!channel) {
      channel = this.#add(stored.type, stored.name, stored.id)
      channel.outgoing = stored.outgoing
      channel.outgoingBytes = stored.outgoingBytes
      channel.lastActivity = stored.lastActivity
      this.#expected.delete(`${stored.type} ${stored.name}`)
    }
    if (stored.type === 'queues') {
      this.totals.entries += stored.entries - channel.entries
      this.totals.delayed += stored.delayed - channel.delayed
      if (this.#counting) {
        this.sinceOpen.deadLettered += stored.deadLettered - channel.deadLettered
        this.sinceOpen.expired += stored.expired - channel.expired
      }
    }
    channel.incoming = stored.incoming
    channel.incomingBytes = stored.incomingBytes
    channel.lastActivity = Math.max(channel.lastActivity, stored.lastActivity)
    channel.entries = stored.entries
    channel.delayed = stored.delayed
    channel.bytes = stored.bytes
    channel.deadLettered = stored.deadLettered
    channel.expired = stored.expired
    channel.firstSequence = stored.firstSequence
    channel.lastSequence = stored.lastSequence
    channel.compacted = stored.compacted
  }

  /** Counts from here on: the counters of channels that were loaded are from before. */
  startCounting(): void {
    this.#counting = true
  }

  /** @param held The messages that are leased or back off */
  setHeld(channel: LiveChannel, held: number, backingOff: number): void {
    this.totals.inFlight += held - backingOff - channel.inFlight
    channel.inFlight = held - backingOff
    this.totals.backingOff += backingOff - channel.backingOff
    channel.backingOff = backingOff
  }

  /** Counts a message to a channel that is not stored. */
  received(channel: LiveChannel, bytes: number): void {
    channel.incoming++
    channel.incomingBytes += bytes
    channel.lastActivity = this.#now()
  }

  /** Counts messages that were delivered to a receiver, reader or subscriber. */
  delivered(channel: LiveChannel, count: number, bytes: number): void {
    channel.outgoing += count
    channel.outgoingBytes += bytes
    this.touch(channel)
  }

  /** Records activity: traffic, or a subscriber that left. */
  touch(channel: LiveChannel, at = this.#now()): void {
    channel.lastActivity = Math.max(channel.lastActivity, at)
    if (channel.id > 0) this.#changedActivity.add(channel)
  }

  /** Returns the counts of {@link delivered} and {@link touch} since the last call, for the writer to store. */
  takeActivity(wanted: (channel: ChannelActivity) => boolean): ActivityOperation | undefined {
    if (this.#changedActivity.size === 0) return undefined
    const channels: ChannelActivity[] = []
    for (const { type, name, id, outgoing, outgoingBytes, lastActivity } of this.#changedActivity) {
      if (type === 'queues' || type === 'events_store') {
        const activity = { type, name, id, outgoing, outgoingBytes, lastActivity }
        if (wanted(activity)) channels.push(activity)
      }
    }
    this.#changedActivity.clear()
    return channels.length === 0 ? undefined : { kind: 'activity', channels }
  }

  /** Removes unused channels of the broker: each stream leaves one. */
  forgetIdleReserved(): void {
    const before = this.#now() - RESERVED_IDLE_MS
    for (const type of ['events', 'commands', 'queries'] as const) {
      for (const channel of this.#byType[type].values()) {
        if (!isReservedChannel(channel.name) || channel.subscribers > 0) continue
        if (channel.lastActivity > 0 && channel.lastActivity < before) this.remove(type, channel.name)
      }
    }
  }

  state(channel: LiveChannel, otherSubscribers = 0): ChannelState {
    const { type, name, incoming, incomingBytes, outgoing, outgoingBytes } = channel
    const subscribers = channel.subscribers + otherSubscribers
    return {
      type,
      name,
      incoming,
      incomingBytes,
      outgoing,
      outgoingBytes,
      subscribers,
      lastActivity: subscribers > 0 ? this.#now() : channel.lastActivity,
      queue: type === 'queues' ? queueState(channel) : undefined,
      eventsStore: type === 'events_store' ? eventsStoreState(channel) : undefined,
    }
  }
}

function queueState(channel: LiveChannel): NonNullable<ChannelState['queue']> {
  const { entries, delayed, inFlight, backingOff, bytes, deadLettered, expired } = channel
  const waiting = Math.max(0, entries - inFlight - backingOff)
  return { waiting, delayed: delayed + backingOff, inFlight, bytes, deadLettered, expired }
}

function eventsStoreState(channel: LiveChannel): NonNullable<ChannelState['eventsStore']> {
  const { firstSequence, lastSequence, entries, bytes } = channel
  // An events store emptied by retention has no last entry, but its sequences continue.
  return { firstSequence, lastSequence: entries === 0 ? 0 : lastSequence, entries, bytes }
}
