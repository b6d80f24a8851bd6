import type {
  AppendResult,
  EventsStoreAppend,
  EventsStoreEngine,
  EventsStoreStart,
  ReadOptions,
  StoredEvent,
  StoredEventListener,
  SubscribeOptions,
  Subscription,
} from '@signalbox/broker-core/engine'
import { messageSize, OpenSubscription, unavailable } from '@signalbox/broker-core/engine'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import { ownBody } from '../bytes.ts'
import type { Store } from '../store/store.ts'
import { tagsJson } from '../store/tags.ts'
import type { NewEntry } from '../writer/operations.ts'
import { EventsStoreFeed } from './events-store-feed.ts'
import { EventsStoreGroup } from './events-store-group.ts'
import type { EventsStoreItem } from './events-store-reader.ts'
import { EventsStoreReader } from './events-store-reader.ts'
import { EventsStoreSubscriber } from './events-store-subscriber.ts'
import { Turns } from './turns.ts'

interface Followed {
  readonly feed: EventsStoreFeed
  readonly groups: Map<string, EventsStoreGroup>
  readonly subscriptions: Set<OpenSubscription>
}

/**
 * The events stores of the embedded engine. Entries are on disk; subscribers that are up to date get them from memory.
 */
export class EmbeddedEventsStore implements EventsStoreEngine {
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #now: () => number
  readonly #reader: EventsStoreReader
  readonly #turns = new Turns()
  readonly #followed = new Map<string, Followed>()
  #closed = false

  constructor(store: Store, registry: ChannelRegistry, now: () => number) {
    this.#store = store
    this.#registry = registry
    this.#now = now
    this.#reader = new EventsStoreReader(store)
  }

  append(channel: string, message: EventsStoreAppend): Promise<AppendResult> {
    const refusal = this.#store.damage.refusal('events_store', channel)
    if (refusal) return Promise.reject(refusal)
    const now = this.#now()
    const entry = newEntry(message)
    const [, , size, , , , , body] = entry.columns
    return this.#registry.creating('events_store', channel, () =>
      this.#store.submit('append', { kind: 'append', channel, now, entry }, size, (result) => {
        const { channelId, sequence, timestamp, duplicateOf } = result
        if (duplicateOf !== undefined) return { id: duplicateOf, sequence, timestamp, duplicate: true }
        const followed = this.#followed.get(channel)
        if (followed?.feed.channel?.id === channelId) {
          followed.feed.append({
            event: storedEvent(channel, message, body, sequence, timestamp),
            size,
          })
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

  async readLatest(
    name: string,
    { maxMessages, maxBytes }: { maxMessages: number; maxBytes?: number },
  ): Promise<readonly StoredEvent[]> {
    const channel = this.#channel(name)
    if (!channel) return []
    return this.#given(channel, this.#reader.latest(channel, maxMessages, maxBytes))
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

  async subscribe(
    name: string,
    start: EventsStoreStart,
    { group: groupName, signal }: SubscribeOptions,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    signal?.throwIfAborted()
    if (!this.#channel(name)) {
      await this.create(name, {})
      signal?.throwIfAborted()
      if (this.#closed) throw unavailable('it is closed')
    }
    const followed = this.#follow(name)
    return groupName === undefined
      ? this.#subscribeAlone(followed, start, signal, listener)
      : this.#join(followed, groupName, start, signal, listener)
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
    this.#count(followed, subscription)
    subscriber.pump()
    return subscription
  }

  #join(
    followed: Followed,
    groupName: string,
    start: EventsStoreStart,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Subscription {
    const { feed, groups } = followed
    const group = groups.get(groupName) ?? new EventsStoreGroup(feed, start)
    groups.set(groupName, group)
    feed.followers.add(group)
    const subscription = new OpenSubscription(signal, () => {
      group.leave(subscription)
      if (group.size === 0) {
        if (groups.get(groupName) === group) groups.delete(groupName)
        feed.followers.delete(group)
      }
      this.#unfollow(followed, subscription)
    })
    this.#count(followed, subscription)
    group.join(listener, subscription)
    return subscription
  }

  #follow(name: string): Followed {
    let followed = this.#followed.get(name)
    if (!followed) {
      const context = { registry: this.#registry, reader: this.#reader, turns: this.#turns, now: this.#now }
      followed = { feed: new EventsStoreFeed(name, context), groups: new Map(), subscriptions: new Set() }
      this.#followed.set(name, followed)
    }
    return followed
  }

  #count({ feed, subscriptions }: Followed, subscription: OpenSubscription): void {
    subscriptions.add(subscription)
    if (feed.channel) feed.channel.subscribers = subscriptions.size
  }

  #unfollow({ feed, subscriptions }: Followed, subscription: OpenSubscription): void {
    subscriptions.delete(subscription)
    if (feed.channel) {
      feed.channel.subscribers = subscriptions.size
      this.#registry.touch(feed.channel)
    }
    if (subscriptions.size === 0) this.#followed.delete(feed.name)
  }

  /** Creates the channel or updates its options; returns false if it existed. */
  create(channel: string, options: { compacted?: boolean; maxAgeMs?: number; maxBytes?: number }): Promise<boolean> {
    const { compacted, maxAgeMs, maxBytes } = options
    const operation = {
      kind: 'createChannel',
      type: 'events_store',
      channel,
      options: { compacted, maxAgeMs, maxBytes },
    } as const
    return this.#registry.creating('events_store', channel, () =>
      this.#store.submit('createChannel', operation, 0, ({ created }) => created),
    )
  }

  /** Resets subscriptions after the channel was deleted or created again: they continue with the new one's entries. */
  forget(name: string): void {
    this.#followed.get(name)?.feed.restart()
  }

  /** Counts the waiting subscriptions as subscribers of a channel that was created. */
  appeared(channel: LiveChannel): void {
    channel.subscribers = this.#followed.get(channel.name)?.subscriptions.size ?? 0
  }

  /** Continues after the store was read again. Delivers entries that were written without an answer to their sender. */
  reopened(): void {
    for (const { feed } of this.#followed.values()) feed.pump()
  }

  close(): void {
    this.#closed = true
    for (const { subscriptions } of this.#followed.values()) {
      for (const subscription of Array.from(subscriptions)) subscription.end(unavailable('it is closed'))
    }
  }
}

function newEntry(message: EventsStoreAppend): NewEntry {
  const { id, clientId, metadata, tags, key, expectLastOfKey, tombstone = false, deduplicationId } = message
  const size = messageSize(message)
  const body = ownBody(message.body)
  return {
    columns: [id, clientId, size, metadata, tagsJson(tags), key ?? null, tombstone ? 1 : 0, body],
    ...(expectLastOfKey === undefined ? {} : { expectLastOfKey }),
    ...(deduplicationId === undefined ? {} : { deduplicationId }),
  }
}

function storedEvent(
  channel: string,
  { id, clientId, metadata, tags, key, tombstone }: EventsStoreAppend,
  body: Uint8Array,
  sequence: number,
  timestamp: number,
): StoredEvent {
  return {
    id,
    clientId,
    body,
    metadata,
    tags,
    channel,
    timestamp,
    sequence,
    ...(key === undefined ? {} : { key }),
    ...(tombstone ? { tombstone: true as const } : {}),
  }
}
