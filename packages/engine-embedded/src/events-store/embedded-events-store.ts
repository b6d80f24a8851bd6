import type {
  AppendResult,
  ChannelOptions,
  EventsStoreAppend,
  EventsStoreEngine,
  EventsStoreStart,
  EventsStoreSubscribeOptions,
  LatestOptions,
  ReadOptions,
  SettingsTable,
  StoredEvent,
  StoredEventListener,
  Subscription,
} from '@signalbox/broker-core/engine'
import { entryKeyOf, OpenSubscription, unavailable } from '@signalbox/broker-core/engine'
import { SerialTasks } from '@signalbox/broker-core/internal'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import { appendedEvent, entryRow } from '../store/message-rows.ts'
import type { Store } from '../store/store.ts'
import { optionsOf } from '../store/stored-channel.ts'
import type { DurableGroup } from './durable-positions.ts'
import { DurablePositions } from './durable-positions.ts'
import type { FeedContext } from './events-store-feed.ts'
import { EventsStoreFeed, startOf, Turns } from './events-store-feed.ts'
import type { EventsStoreItem } from './events-store-reader.ts'
import { EventsStoreReader } from './events-store-reader.ts'
import { EventsStoreGroup, EventsStoreSubscriber } from './events-store-subscribers.ts'

/**
 * The events stores of the embedded engine. Entries are on disk; subscribers that are up to date get them from memory.
 */
export class EmbeddedEventsStore implements EventsStoreEngine {
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #settings: SettingsTable
  readonly #now: () => number
  readonly #reader: EventsStoreReader
  readonly #subscriptions: EventsStoreSubscriptions
  #closed = false

  /** @param durableGroupMs The time for which the position of a group without subscribers is kept */
  constructor(
    store: Store,
    registry: ChannelRegistry,
    settings: SettingsTable,
    now: () => number,
    durableGroupMs: number,
  ) {
    this.#store = store
    this.#registry = registry
    this.#settings = settings
    this.#now = now
    this.#reader = new EventsStoreReader(store)
    const context = { registry, reader: this.#reader, turns: new Turns(), now }
    const positions = new DurablePositions(store, now, durableGroupMs)
    this.#subscriptions = new EventsStoreSubscriptions(context, positions, (name) => this.create(name, {}))
  }

  append(channel: string, given: EventsStoreAppend): Promise<AppendResult> {
    const refusal = this.#store.damage.refusal('events_store', channel)
    if (refusal) return Promise.reject(refusal)
    const now = this.#now()
    const key = entryKeyOf(this.#settings, channel, given)
    const message = key === given.key ? given : { ...given, key }
    const entry = entryRow(message)
    const { size } = entry
    return this.#registry.creating('events_store', channel, () =>
      this.#store.submit('append', { kind: 'append', channel, now, entry }, size, (result) => {
        const { channelId, sequence, timestamp, duplicateOf } = result
        if (duplicateOf !== undefined) return { id: duplicateOf, sequence, timestamp, duplicate: true }
        const feed = this.#subscriptions.feed(channel)
        if (feed?.channel?.id === channelId) {
          feed.append({ event: appendedEvent(message, entry, { channel, sequence, timestamp }), size })
        }
        return { id: message.id, sequence, timestamp, duplicate: false }
      }),
    )
  }

  async read(name: string, options: ReadOptions): Promise<readonly StoredEvent[]> {
    const channel = this.#channel(name)
    if (!channel) return []
    return this.#given(channel, this.#reader.read(channel, options))
  }

  async readLatest(name: string, { maxMessages, ...limit }: LatestOptions): Promise<readonly StoredEvent[]> {
    const channel = this.#channel(name)
    if (!channel) return []
    return this.#given(channel, this.#reader.latest(channel, maxMessages, limit))
  }

  async getLast(name: string, key: string): Promise<StoredEvent | undefined> {
    const channel = this.#channel(name)
    return channel && this.#reader.lastOfKey(channel, key)
  }

  #channel(name: string): LiveChannel | undefined {
    if (this.#closed) throw unavailable('it is closed')
    return this.#registry.get('events_store', name)
  }

  #given(channel: LiveChannel, items: readonly EventsStoreItem[]): StoredEvent[] {
    const bytes = items.reduce((sum, { size }) => sum + size, 0)
    if (items.length > 0) this.#registry.delivered(channel, items.length, bytes)
    return items.map(({ event }) => event)
  }

  subscribe(
    name: string,
    start: EventsStoreStart,
    options: EventsStoreSubscribeOptions,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    return this.#subscriptions.subscribe(name, start, options, listener)
  }

  /** Creates the channel or updates its options; returns false if it existed. */
  create(channel: string, given: ChannelOptions): Promise<boolean> {
    const options = optionsOf('events_store', given)
    const operation = { kind: 'createChannel', type: 'events_store', channel, options } as const
    return this.#registry.creating('events_store', channel, () =>
      this.#store.submit('createChannel', operation, 0, ({ created }) => created),
    )
  }

  /** Resets subscriptions after the channel was deleted or created again: they continue with the new one's entries. */
  forget(name: string): void {
    this.#subscriptions.feed(name)?.restart()
  }

  /** Counts the waiting subscriptions as subscribers of a channel that was created. */
  channelCreated(channel: LiveChannel): void {
    channel.subscribers = this.#subscriptions.count(channel.name)
  }

  /** Continues after the store was read again. Delivers entries that were written without an answer to their sender. */
  reopened(): void {
    this.#subscriptions.reopened()
  }

  close(): void {
    this.#closed = true
    this.#subscriptions.close()
  }
}

interface Followed {
  readonly feed: EventsStoreFeed
  readonly groups: Map<string, EventsStoreGroup>
  readonly durableGroups: Map<string, DurableGroup>
  readonly subscriptions: Set<OpenSubscription>
}

/** The subscriptions to events stores: alone, in groups, and in durable groups. */
class EventsStoreSubscriptions {
  readonly #context: FeedContext
  readonly #positions: DurablePositions
  readonly #create: (name: string) => Promise<unknown>
  readonly #followed = new Map<string, Followed>()
  /** The subscriptions of each durable group, opened one after the other: the first one reads the position. */
  readonly #opening = new SerialTasks()
  #closed = false

  /** @param create Creates an events store */
  constructor(context: FeedContext, positions: DurablePositions, create: (name: string) => Promise<unknown>) {
    this.#context = context
    this.#positions = positions
    this.#create = create
  }

  /** Returns the feed of a channel with subscriptions. */
  feed(name: string): EventsStoreFeed | undefined {
    return this.#followed.get(name)?.feed
  }

  /** Returns the number of subscriptions to a channel. */
  count(name: string): number {
    return this.#followed.get(name)?.subscriptions.size ?? 0
  }

  async subscribe(
    name: string,
    start: EventsStoreStart,
    { group: groupName, durable = false, signal }: EventsStoreSubscribeOptions,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    signal?.throwIfAborted()
    await this.#ensure(name, signal)
    if (groupName === undefined) return this.#subscribeAlone(this.#follow(name), start, signal, listener)
    if (durable) {
      return this.#opening.run(`${name} ${groupName}`, () =>
        this.#joinDurable(name, groupName, start, signal, listener),
      )
    }
    const followed = this.#follow(name)
    const { feed, groups } = followed
    const group = groups.get(groupName) ?? new EventsStoreGroup(feed, startOf(feed, start))
    groups.set(groupName, group)
    return this.#join(followed, group, signal, listener, () => {
      if (groups.get(groupName) === group) groups.delete(groupName)
    })
  }

  async #ensure(name: string, signal: AbortSignal | undefined): Promise<void> {
    this.#checkOpen()
    if (this.#context.registry.get('events_store', name)) return
    await this.#create(name)
    signal?.throwIfAborted()
    this.#checkOpen()
  }

  #checkOpen(): void {
    if (this.#closed) throw unavailable('it is closed')
  }

  #subscribeAlone(
    followed: Followed,
    start: EventsStoreStart,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Subscription {
    const { feed } = followed
    const subscription = new OpenSubscription(signal, () => {
      feed.followers.delete(subscriber)
      this.#unfollow(followed, subscription)
    })
    const subscriber = new EventsStoreSubscriber(feed, start, listener, subscription)
    feed.followers.add(subscriber)
    this.#updateCount(followed, subscription)
    subscriber.pump()
    return subscription
  }

  async #joinDurable(
    name: string,
    groupName: string,
    start: EventsStoreStart,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    for (;;) {
      signal?.throwIfAborted()
      const live = this.#followed.get(name)
      const group = live?.durableGroups.get(groupName)
      if (live && group) return this.#joinLive(live, group, signal, listener)
      await this.#ensure(name, signal)
      const feed = live?.feed ?? this.#newFeed(name)
      const from = startOf(feed, start)
      const subscription = await this.#positions.join(feed, groupName, from.position, (position) => {
        signal?.throwIfAborted()
        this.#checkOpen()
        const followed = this.#follow(name)
        const at = position === from.position ? from : { position, notBefore: 0 }
        const opened: EventsStoreGroup = new EventsStoreGroup(followed.feed, at, () => this.#positions.changed(durable))
        const durable: DurableGroup = { name: groupName, feed: followed.feed, members: opened }
        this.#positions.add(durable)
        followed.durableGroups.set(groupName, durable)
        return this.#joinLive(followed, durable, signal, listener)
      })
      if (subscription) return subscription
    }
  }

  #joinLive(
    followed: Followed,
    group: DurableGroup,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Subscription {
    return this.#join(followed, group.members, signal, listener, () => {
      followed.durableGroups.delete(group.name)
      this.#positions.remove(group)
    })
  }

  /** @param emptied Called when the last subscriber has left the group */
  #join(
    followed: Followed,
    group: EventsStoreGroup,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
    emptied: () => void,
  ): Subscription {
    const { feed } = followed
    feed.followers.add(group)
    const subscription = new OpenSubscription(signal, () => {
      group.leave(subscription)
      if (group.size === 0) {
        emptied()
        feed.followers.delete(group)
      }
      this.#unfollow(followed, subscription)
    })
    this.#updateCount(followed, subscription)
    group.join(listener, subscription)
    return subscription
  }

  #follow(name: string): Followed {
    let followed = this.#followed.get(name)
    if (!followed) {
      followed = {
        feed: this.#newFeed(name),
        groups: new Map(),
        durableGroups: new Map(),
        subscriptions: new Set(),
      }
      this.#followed.set(name, followed)
    }
    return followed
  }

  #newFeed(name: string): EventsStoreFeed {
    return new EventsStoreFeed(name, this.#context)
  }

  #updateCount({ feed, subscriptions }: Followed, subscription: OpenSubscription): void {
    subscriptions.add(subscription)
    if (feed.channel) feed.channel.subscribers = subscriptions.size
  }

  #unfollow({ feed, subscriptions }: Followed, subscription: OpenSubscription): void {
    subscriptions.delete(subscription)
    if (feed.channel) {
      feed.channel.subscribers = subscriptions.size
      this.#context.registry.touch(feed.channel)
    }
    if (subscriptions.size === 0) this.#followed.delete(feed.name)
  }

  /** Continues after the store was read again. */
  reopened(): void {
    for (const { feed } of this.#followed.values()) feed.pump()
    this.#positions.reopened()
  }

  close(): void {
    this.#closed = true
    for (const { subscriptions } of this.#followed.values()) {
      for (const subscription of Array.from(subscriptions)) subscription.end(unavailable('it is closed'))
    }
    this.#positions.close()
  }
}
