import type { OutgoingMessage, StoredEvent } from '../message.ts'
import type { EventsStoreSubscribeOptions } from './event-engine.ts'
import type { SendResult } from './queue-engine.ts'
import type { ResultLimit } from './result-size.ts'
import type { Subscription } from './subscription.ts'

export interface EventsStoreAppend extends OutgoingMessage {
  /** The id for deduplication: within two minutes, also across a restart, only the first entry with the same id is stored. */
  readonly deduplicationId?: string | undefined
  /** The key of the entry. A compacted store keeps the last entry of each key. */
  readonly key?: string | undefined
  /**
   * A condition on the last entry of `key`, tombstones included: append only if it has this sequence, or, for 0, only
   * if there is none. Otherwise the call rejects with CONFLICT and writes nothing.
   */
  readonly expectLastOfKey?: number | undefined
  /** `true` deletes `key` from a compacted store. The tombstone itself is removed an hour later. */
  readonly tombstone?: boolean | undefined
}

export interface AppendResult extends SendResult {
  /** The time of the entry, in ms since the epoch; never before that of the previous sequence. */
  readonly timestamp: number
}

/** The position where a subscription to an events store starts. */
export type EventsStoreStart =
  | { readonly from: 'new' }
  | { readonly from: 'first' }
  /** The last stored entry, then new ones. */
  | { readonly from: 'last' }
  | { readonly from: 'sequence'; readonly sequence: number }
  /** The first entry at or after this time, in ms since the epoch. */
  | { readonly from: 'time'; readonly timestamp: number }
  /** Like `time`: this many milliseconds before now. */
  | { readonly from: 'delta'; readonly milliseconds: number }

export interface LatestOptions extends ResultLimit {
  /** The maximum number of entries, at least 1. */
  readonly maxMessages: number
}

export interface ReadOptions extends LatestOptions {
  /** The first sequence to read. Excludes `fromTimestamp`. Without either, reading starts at the first stored entry. */
  readonly fromSequence?: number | undefined
  /** Read entries at or after this time, in ms since the epoch. */
  readonly fromTimestamp?: number | undefined
}

/** A subscriber of an events store. The next event is delivered when the promise of this one resolves. */
export type StoredEventListener = (event: StoredEvent) => void | Promise<void>

export interface EventsStoreEngine {
  /** Appends an entry; resolves when it is durable. @throws BrokerError CONFLICT, CHANNEL_LIMIT */
  append(channel: string, message: EventsStoreAppend): Promise<AppendResult>
  /** Returns entries, oldest first. Empty if the channel does not exist. */
  read(channel: string, options: ReadOptions): Promise<readonly StoredEvent[]>
  /** Returns the newest entries, newest first. Empty if the channel does not exist. */
  readLatest(channel: string, options: LatestOptions): Promise<readonly StoredEvent[]>
  /** Returns the last entry with this key, tombstones included; undefined if there is none. */
  getLast(channel: string, key: string): Promise<StoredEvent | undefined>
  /**
   * Delivers every entry from `start`, in order, without gaps or repeats. The next entry is delivered when the
   * listener's promise has resolved. A slow listener therefore delays only its own subscription; entries that it has
   * not reached stay in the store and are not kept in memory. The subscribers of a group share one position, which
   * exists as long as the group has a subscriber. If a listener rejects, or its subscriber closes before the promise
   * resolves, the entry goes to another subscriber of the group. Subscribing creates the channel.
   *
   * The position of a durable group is stored when the promise of `subscribe` resolves, and from then on `start` has no
   * effect for the group. It moves past an entry when the promises of this entry and of all before it have resolved.
   * After a crash, entries are delivered again from a recent position: at least once. A stored position is removed
   * {@link DURABLE_GROUP_MS} after the last subscriber left, and with its channel.
   * @throws BrokerError CHANNEL_LIMIT, GROUP_LIMIT
   */
  subscribe(
    channel: string,
    start: EventsStoreStart,
    options: EventsStoreSubscribeOptions,
    listener: StoredEventListener,
  ): Promise<Subscription>
}
