import type {
  EventsStoreStart,
  EventsStoreSubscribeOptions,
  StoredEventListener,
  Subscription,
} from '@signalbox/broker-core/engine'
import { OpenSubscription, unavailable } from '@signalbox/broker-core/engine'

import type { DurableGroup, DurablePositions } from './durable-positions.ts'
import type { FeedContext } from './events-store-feed.ts'
import { EventsStoreFeed, startOf } from './events-store-feed.ts'
import { EventsStoreGroup } from './events-store-group.ts'
import { EventsStoreSubscriber } from './events-store-subscriber.ts'

interface Followed {
  readonly feed: EventsStoreFeed
  readonly groups: Map<string, EventsStoreGroup>
  readonly durableGroups: Map<string, DurableGroup>
  readonly subscriptions: Set<OpenSubscription>
}

/** The subscriptions to events stores: alone, in groups, and in durable groups. */
export class EventsStoreSubscriptions {
  readonly #context: FeedContext
  readonly #positions: DurablePositions
  readonly #create: (name: string) => Promise<unknown>
  readonly #followed = new Map<string, Followed>()
  /** The last subscription of each durable group that is being opened. */
  readonly #opening = new Map<string, Promise<unknown>>()
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
    if (durable) return this.#joinDurable(name, groupName, start, signal, listener)
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

  /** Joins a durable group after the earlier calls that join it: the first one reads the position. */
  async #joinDurable(
    name: string,
    groupName: string,
    start: EventsStoreStart,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    const key = `${name} ${groupName}`
    const before = this.#opening.get(key) ?? Promise.resolve()
    const joined = before.catch(() => {}).then(() => this.#joinStored(name, groupName, start, signal, listener))
    this.#opening.set(key, joined)
    try {
      return await joined
    } finally {
      if (this.#opening.get(key) === joined) this.#opening.delete(key)
    }
  }

  async #joinStored(
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
