import type {
  AppendResult,
  EventsStoreAppend,
  EventsStoreEngine,
  EventsStoreStart,
  EventsStoreSubscribeOptions,
  LatestOptions,
  ReadOptions,
  StoredEvent,
  StoredEventListener,
  Subscription,
} from '@signalbox/broker-core/engine'
import { unavailable } from '@signalbox/broker-core/engine'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import { appendedEvent, entryRow } from '../store/message-rows.ts'
import type { Store } from '../store/store.ts'
import { DurablePositions } from './durable-positions.ts'
import type { EventsStoreItem } from './events-store-reader.ts'
import { EventsStoreReader } from './events-store-reader.ts'
import { EventsStoreSubscriptions } from './events-store-subscriptions.ts'
import { Turns } from './turns.ts'

/**
 * The events stores of the embedded engine. Entries are on disk; subscribers that are up to date get them from memory.
 */
export class EmbeddedEventsStore implements EventsStoreEngine {
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #now: () => number
  readonly #reader: EventsStoreReader
  readonly #subscriptions: EventsStoreSubscriptions
  #closed = false

  /** @param durableGroupMs The time for which the position of a group without subscribers is kept */
  constructor(store: Store, registry: ChannelRegistry, now: () => number, durableGroupMs: number) {
    this.#store = store
    this.#registry = registry
    this.#now = now
    this.#reader = new EventsStoreReader(store)
    const context = { registry, reader: this.#reader, turns: new Turns(), now }
    const positions = new DurablePositions(store, now, durableGroupMs)
    this.#subscriptions = new EventsStoreSubscriptions(context, positions, (name) => this.create(name, {}))
  }

  append(channel: string, message: EventsStoreAppend): Promise<AppendResult> {
    const refusal = this.#store.damage.refusal('events_store', channel)
    if (refusal) return Promise.reject(refusal)
    const now = this.#now()
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
    this.#subscriptions.feed(name)?.restart()
  }

  /** Counts the waiting subscriptions as subscribers of a channel that was created. */
  appeared(channel: LiveChannel): void {
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
