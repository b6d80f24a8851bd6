import type { ChannelType } from './channel.ts'
import type {
  Message,
  OutgoingMessage,
  QueueDelivery,
  QueueMessage,
  Reply,
  RequestMessage,
  StoredEvent,
} from './message.ts'

/**
 * The port that every storage and transport implements. An engine handles bytes, channels, sequences, leases and
 * subscriptions. It has no part in HTTP, permissions or metrics: the Broker checks names, sizes and permissions before
 * it calls. The contract suite (`@signalbox/broker-core/testing`) specifies each method.
 *
 * Every call may reject with `ENGINE_UNAVAILABLE`. If a call accepts an AbortSignal and the signal is aborted, the call
 * rejects with the signal's reason and has no effect.
 */
export interface Engine {
  /** A short, stable name: the value of the setting that selects the engine. */
  readonly name: string
  readonly capabilities: EngineCapabilities
  readonly limits: EngineLimits
  readonly queues: QueueEngine
  readonly events: EventEngine
  readonly eventsStore: EventsStoreEngine
  readonly requests: RequestEngine
  readonly channels: ChannelEngine
  health(): Promise<EngineHealth>
  stats(): Promise<EngineStats>
  /** Returns the other nodes of the cluster that this node hears. Absent for an engine of one node. */
  otherNodes?(): readonly OtherNode[]
  /** Ends every waiting call and every subscription, then stops the engine. Idempotent. */
  close(): Promise<void>
}

/**
 * The differences that engines may have. Engines declare them here, and the contract suite asserts the declarations.
 */
export interface EngineCapabilities {
  /** `true` when the engine syncs a message to disk before it acknowledges the message. */
  readonly fsyncBeforeAck: boolean
  /**
   * `true` when a nacked message returns to its previous position. `false`: it comes before all messages that were
   * never delivered.
   */
  readonly exactNackOrder: boolean
  /** `true` when `peek` omits leased messages. */
  readonly peekHidesLeased: boolean
  /** `true` when a lease can be settled on a node other than the one that granted it. */
  readonly leaseSurvivesNode: boolean
  /**
   * `true` when messages are on other machines: calls fail while those are unreachable, and succeed when they are back.
   */
  readonly remoteStorage: boolean
  /** The highest number of delayed messages in one queue; 0 is unlimited. */
  readonly maxDelayedPerQueue: number
  /** `true` when expired messages are removed, some time after their expiry, even while no broker node runs. */
  readonly expiryWithoutNode: boolean
}

export interface EngineLimits {
  /** The maximum message size (body, metadata and tags together), in bytes. */
  readonly maxMessageBytes: number
  /** The maximum number of channels, all types together. Channels of the broker do not count. */
  readonly maxChannels: number
}

export interface EngineHealth {
  readonly ok: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

/** Another node of the cluster. */
export interface OtherNode {
  /** The id that the engine gave the node at its start. */
  readonly id: string
  /** The name and the version that the node announces; empty for a node of an older version. */
  readonly name: string
  readonly version: string
  /** The time of its last message, in ms since the epoch. */
  readonly lastSeen: number
}

/** Gauges for operators. */
export interface EngineStats {
  /** Storage used on disk, in bytes. */
  readonly storeBytes: number
  /**
   * The number of channels of users, all types together. The broker's channels, which begin with `_AGENTS_.`, do not
   * count.
   */
  readonly channels: number
  /** Messages in all queues: `waiting` are deliverable now, `delayed` are not yet visible, `inFlight` are leased. */
  readonly queues: { readonly waiting: number; readonly delayed: number; readonly inFlight: number }
  /** Counters of all queues. Each node counts its own part, so the sum over the nodes is the total of a cluster. */
  readonly sinceOpen: QueueCounters
}

/** Counters of an engine since it was opened. They never decrease, also if a queue is deleted. */
export interface QueueCounters {
  /** Messages that moved to a dead-letter queue. */
  readonly deadLettered: number
  /** Deliveries of messages that had been delivered before. */
  readonly redelivered: number
  /** Messages that were removed because they expired. */
  readonly expired: number
}

/** A running subscription. */
export interface Subscription extends AsyncDisposable {
  /** Resolves when the subscription has ended: with an error when the engine ended it, otherwise with undefined. */
  readonly closed: Promise<Error | undefined>
  /** Ends the subscription. No delivery starts after the returned promise resolves. Idempotent. */
  close(): Promise<void>
}

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface QueueSend extends OutgoingMessage {
  /** The time until the message is visible, in ms; 0 is immediately. */
  readonly delayMs: number
  /** The time from the send until the message expires, in ms; 0 is never. A delay does not extend it. */
  readonly expirationMs: number
  /**
   * Receives before the message moves to `deadLetterQueue`; 0 is unlimited. Has no effect without a `deadLetterQueue`.
   */
  readonly maxReceiveCount: number
  /** The name of the dead-letter queue; empty for none. */
  readonly deadLetterQueue: string
  /**
   * The id for deduplication: within two minutes, also across a restart, the queue stores only the first send with the
   * same id.
   */
  readonly deduplicationId?: string
}

export interface SendResult {
  /** The message's id. For a duplicate, the id of the first send. */
  readonly id: string
  readonly sequence: number
  readonly duplicate: boolean
}

export interface ReceiveOptions {
  /** The maximum number of messages, at least 1. */
  readonly maxMessages: number
  /**
   * A soft limit on the bytes of one result (body, metadata and tags). The first message is always returned; a further
   * one only if it fits.
   */
  readonly maxBytes?: number
  /** The maximum time to wait for a first message, in ms; 0 does not wait. */
  readonly waitMs: number
  /** The duration of the lease, in ms; more than 0. */
  readonly leaseMs: number
  /** The ClientID of the receiver. Only the same ClientID may settle the delivery. */
  readonly clientId: string
  readonly signal?: AbortSignal
}

export interface PeekOptions {
  /** The maximum number of messages, at least 1. */
  readonly maxMessages: number
  /** A soft limit on the bytes of one result, as for {@link ReceiveOptions.maxBytes}. */
  readonly maxBytes?: number
  /** The first sequence to show, at least 1. @default the first message of the queue */
  readonly fromSequence?: number
}

export interface SettleResult {
  readonly settled: number
  /** Receipts that settled nothing: unknown, already settled, of another client, or with an expired lease. */
  readonly lost: readonly string[]
}

export interface QueueEngine {
  /** Stores a message; resolves when it is durable. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  send(channel: string, message: QueueSend): Promise<SendResult>
  /** Stores all messages or none; resolves when they are durable. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]>
  /**
   * Leases up to `maxMessages` messages that are due, in FIFO order, as soon as there is one. Resolves with an empty
   * list when `waitMs` passes without a message, also if the queue does not exist. Receivers that wait are served in
   * the order of their calls. Aborting the signal returns messages that were already leased to their positions, without
   * counting a receive.
   */
  receive(channel: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]>
  /** Removes the messages permanently; resolves when the removal is durable. */
  ack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /**
   * Rejects the messages: each returns to its position immediately. This counts as a receive: after `maxReceiveCount`
   * receives the message moves to its dead-letter queue, with the tags `dlq_source`, `dlq_reason` and
   * `dlq_receive_count`, and does not expire there.
   */
  nack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /** Sets the end of the leases to `leaseMs` ms from now. */
  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult>
  /**
   * Returns the messages that a receive would return next, and leaves them unchanged. Empty if the queue does not
   * exist.
   */
  peek(channel: string, options: PeekOptions): Promise<readonly QueueMessage[]>
  /**
   * Returns the time at which the oldest waiting message was sent, in ms since the epoch; undefined if no message waits.
   * Must not read bodies in the usual case. An engine whose `peek` shows leased messages may return one of those while
   * others wait.
   */
  oldestWaiting(channel: string): Promise<number | undefined>
  /** Removes every message that is not leased, including delayed ones; resolves with the number of removed messages. */
  purge(channel: string): Promise<number>
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface SubscribeOptions {
  /**
   * The consumer group: each message goes to one subscriber of the group. Without a group, the subscriber gets every
   * message.
   */
  readonly group?: string
  /** Closes the subscription when aborted. */
  readonly signal?: AbortSignal
}

/** The options of a subscription to an events store. */
export interface EventsStoreSubscribeOptions extends SubscribeOptions {
  /**
   * `true` stores the position of `group`, which is required: the position survives the group's subscribers and
   * restarts. A group with and one without `durable` are different groups, also with the same name. @default false
   */
  readonly durable?: boolean
}

export interface EventEngine {
  /** Delivers the event to the current subscribers, without storing it. @throws BrokerError CHANNEL_LIMIT */
  publish(channel: string, message: OutgoingMessage): Promise<void>
  /**
   * Subscribes to a channel, or to several by a pattern: the token `*` matches one token, `>` as the last token matches
   * one or more. Wildcards never match the broker's own channels. Calls the listener in the order of publishing. The
   * listener must not block: it buffers, and handles a full buffer. Subscribing to a channel by its name creates the
   * channel.
   * @throws BrokerError CHANNEL_LIMIT
   */
  subscribe(pattern: string, options: SubscribeOptions, listener: (event: Message) => void): Promise<Subscription>
}

// ── Events stores ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface EventsStoreAppend extends OutgoingMessage {
  /** The id for deduplication, as for {@link QueueSend.deduplicationId}. */
  readonly deduplicationId?: string
  /** The key of the entry. A compacted store keeps the last entry of each key. */
  readonly key?: string
  /**
   * A condition on the last entry of `key`, tombstones included: append only if it has this sequence, or, for 0, only
   * if there is none. Otherwise the call rejects with CONFLICT and writes nothing.
   */
  readonly expectLastOfKey?: number
  /** `true` deletes `key` from a compacted store. The tombstone itself is removed an hour later. */
  readonly tombstone?: boolean
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

export interface ReadOptions {
  /** The first sequence to read. Excludes `fromTimestamp`. Without either, reading starts at the first stored entry. */
  readonly fromSequence?: number
  /** Read entries at or after this time, in ms since the epoch. */
  readonly fromTimestamp?: number
  /** The maximum number of entries, at least 1. */
  readonly maxMessages: number
  /** A soft limit on the bytes of one result, as for {@link ReceiveOptions.maxBytes}. */
  readonly maxBytes?: number
}

/** A subscriber of an events store. The next event is delivered when the promise of this one resolves. */
export type StoredEventListener = (event: StoredEvent) => void | Promise<void>

export interface EventsStoreEngine {
  /** Appends an entry; resolves when it is durable. @throws BrokerError CONFLICT, CHANNEL_LIMIT */
  append(channel: string, message: EventsStoreAppend): Promise<AppendResult>
  /** Returns entries, oldest first. Empty if the channel does not exist. */
  read(channel: string, options: ReadOptions): Promise<readonly StoredEvent[]>
  /** Returns the newest entries, newest first. Empty if the channel does not exist. */
  readLatest(channel: string, options: { maxMessages: number; maxBytes?: number }): Promise<readonly StoredEvent[]>
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

// ── Commands and queries ────────────────────────────────────────────────────────────────────────────────────────────

export type RequestType = Extract<ChannelType, 'commands' | 'queries'>

export interface RequestOptions {
  /** The maximum time to wait for the answer, in ms; more than 0. */
  readonly timeoutMs: number
  /**
   * `true` rejects with NO_SUBSCRIBER immediately if all known nodes report no subscriber, instead of waiting for one.
   * Creates no channel. @default false
   */
  readonly onlyIfSubscribed?: boolean
  /** Withdraws the request when aborted, and aborts the signal of its handler. */
  readonly signal?: AbortSignal
  /**
   * Aborted when the caller can no longer get the answer. A request that no subscriber has received is dropped and
   * rejects with the signal's reason; one that a subscriber has received continues.
   */
  readonly callerGone?: AbortSignal
}

export interface RequestEngine {
  /**
   * Delivers the request to one subscriber of each group; resolves with the first reply. While the request is
   * undelivered and unanswered, a new subscriber gets it too.
   * @throws BrokerError NO_SUBSCRIBER, REQUEST_TIMEOUT, CHANNEL_LIMIT
   */
  request(type: RequestType, channel: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply>
  /**
   * Answers requests. Subscribers without a group form one group. If a handler throws, the request is rejected with a
   * general text. Subscribing creates the channel.
   * @throws BrokerError CHANNEL_LIMIT
   */
  serve(
    type: RequestType,
    channel: string,
    options: SubscribeOptions,
    handler: (request: RequestMessage) => Promise<Reply>,
  ): Promise<Subscription>
}

// ── Channels ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ChannelOptions {
  /** Events stores only: `true` keeps only the last entry of each key. Entries without a key are all kept. */
  readonly compacted?: boolean
  /**
   * Events stores only: the maximum age of entries, in ms; older ones are removed. 0 keeps all. Overrides the engine's
   * setting.
   */
  readonly maxAgeMs?: number
  /**
   * Events stores only: the maximum size, in bytes; beyond it the oldest entries are removed. 0 keeps all. Overrides
   * the engine's setting.
   */
  readonly maxBytes?: number
}

/** The state of a channel. Counts of queues and events stores survive a restart. */
export interface ChannelState {
  readonly type: ChannelType
  readonly name: string
  /** Accepted messages. */
  readonly incoming: number
  readonly incomingBytes: number
  /** Delivered messages; each delivery counts. */
  readonly outgoing: number
  readonly outgoingBytes: number
  readonly subscribers: number
  /** The time of the last message in or out, or the last time with a subscriber, in ms since the epoch; 0 is never. */
  readonly lastActivity: number
  readonly queue?: {
    /** Messages that are deliverable now. */
    readonly waiting: number
    readonly delayed: number
    /** Leased messages. */
    readonly inFlight: number
    readonly bytes: number
    /** Messages that moved from this queue to a dead-letter queue since its creation. */
    readonly deadLettered: number
    readonly expired: number
  }
  readonly eventsStore?: {
    /** The sequence of the first stored entry; 0 when empty. */
    readonly firstSequence: number
    readonly lastSequence: number
    readonly entries: number
    readonly bytes: number
  }
}

/** A channel by its type and name. */
export interface ChannelName {
  readonly type: ChannelType
  readonly name: string
}

export interface ChannelEngine {
  /** Returns whether this node knows the channel. Must be fast, from memory: the Broker asks for every message. */
  exists(type: ChannelType, name: string): boolean
  /**
   * Returns the names of every channel, including the broker's own, in the order of {@link list}. Does not read their
   * states.
   */
  names(type?: ChannelType): Promise<readonly ChannelName[]>
  /** Returns every channel, including the broker's own, ordered by name; of one type or of all. */
  list(type?: ChannelType): Promise<readonly ChannelState[]>
  /**
   * Returns the states of the given channels, in the same order. Omits channels that do not exist. If one state cannot
   * be read, the others are still returned.
   */
  states(channels: readonly ChannelName[]): Promise<readonly ChannelState[]>
  info(type: ChannelType, name: string): Promise<ChannelState | undefined>
  /**
   * Creates a channel; returns false if it exists already. Updates the options of an existing channel.
   * @throws BrokerError CHANNEL_LIMIT
   */
  create(type: ChannelType, name: string, options?: ChannelOptions): Promise<boolean>
  /**
   * Deletes the channel and its content; returns false if it does not exist. Subscriptions continue and see later
   * messages.
   */
  delete(type: ChannelType, name: string): Promise<boolean>
}
