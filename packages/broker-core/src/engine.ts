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
 * The port that every storage and transport implements. An engine knows bytes, channels, sequences, leases and
 * subscriptions, and nothing of HTTP, callers' rights or metrics: the Broker has checked names, sizes and permissions
 * before it calls. One contract suite (`@signalbox/broker-core/testing`) says what each method must do.
 *
 * Every call may reject with `ENGINE_UNAVAILABLE`. A call that takes an AbortSignal rejects with the signal's reason
 * once it is aborted and leaves nothing behind.
 */
export interface Engine {
  /** Short and stable: the value of the setting that selects the engine. */
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
  /** Ends every wait and subscription, then stops. Idempotent. */
  close(): Promise<void>
}

/** What engines may do differently: declared here and asserted by the contract suite, never discovered. */
export interface EngineCapabilities {
  /** Acknowledged means synced to disk before the acknowledgement. */
  readonly fsyncBeforeAck: boolean
  /** A nacked message returns to its exact place; otherwise it precedes every message never delivered. */
  readonly exactNackOrder: boolean
  /** `peek` leaves out messages that are leased at the moment. */
  readonly peekHidesLeased: boolean
  /** A lease can be settled on another node than the one that granted it. */
  readonly leaseSurvivesNode: boolean
  /** Messages live on other machines: calls fail while those are out of reach, and work again once they are back. */
  readonly remoteStorage: boolean
  /** The most delayed messages one queue holds; 0 is no limit. */
  readonly maxDelayedPerQueue: number
  /** Expired messages are removed also while no node of the broker runs, some time after their expiry. */
  readonly expiryWithoutNode: boolean
}

export interface EngineLimits {
  /** The largest message (body, metadata and tags together), in bytes. */
  readonly maxMessageBytes: number
  /** The most channels of all types together, the broker's own not counted. */
  readonly maxChannels: number
}

export interface EngineHealth {
  readonly ok: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

/** Gauges for operators. */
export interface EngineStats {
  /** Bytes on disk. */
  readonly storeBytes: number
  /** Users' channels of all types; the broker's own, which begin with `_AGENTS_.`, are left out. */
  readonly channels: number
  /** Over all queues: deliverable now, waiting for their due time, and leased. */
  readonly queues: { readonly waiting: number; readonly delayed: number; readonly inFlight: number }
}

/** A running subscription. */
export interface Subscription extends AsyncDisposable {
  /** Resolves when it has ended; with an error when the engine ended it, otherwise with undefined. */
  readonly closed: Promise<Error | undefined>
  /** Stops deliveries: none begins after the returned promise resolves. Idempotent. */
  close(): Promise<void>
}

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface QueueSend extends OutgoingMessage {
  /** Milliseconds until the message is visible; 0 is at once. */
  readonly delayMs: number
  /** Milliseconds from the send until it expires; 0 is never. Delay does not prolong it. */
  readonly expirationMs: number
  /** Deliveries before it moves to `deadLetterQueue`; 0 is unlimited. Without a `deadLetterQueue` it has no effect (M9). */
  readonly maxReceiveCount: number
  /** Empty is none. */
  readonly deadLetterQueue: string
  /** A second send with the same id to the same queue within two minutes stores nothing (C5), a restart between or not. */
  readonly deduplicationId?: string
}

export interface SendResult {
  /** The message's id; that of the first send when this one was a duplicate. */
  readonly id: string
  readonly sequence: number
  readonly duplicate: boolean
}

export interface ReceiveOptions {
  /** 1 or more. */
  readonly maxMessages: number
  /** A soft limit on the bytes of one answer (body, metadata and tags): no message is added past it. One is always given. */
  readonly maxBytes?: number
  /** How long to wait for a first message, in milliseconds; 0 does not wait. */
  readonly waitMs: number
  /** How long the caller has to settle, in milliseconds; above 0. */
  readonly leaseMs: number
  /** Who receives: only the same clientId may settle the delivery. */
  readonly clientId: string
  readonly signal?: AbortSignal
}

export interface SettleResult {
  readonly settled: number
  /** Receipts that settled nothing: unknown, already settled, of another client, or past their lease. */
  readonly lost: readonly string[]
}

export interface QueueEngine {
  /** Resolves when the message is durable. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  send(channel: string, message: QueueSend): Promise<SendResult>
  /** All are stored or none. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]>
  /**
   * Leases up to `maxMessages`, first in first out among those that are due, as soon as there is one; empty when
   * `waitMs` passes without any, or when the queue does not exist and is not created meanwhile. Waiting receivers are
   * served in the order they came. Aborting the signal returns what was leased to its place, uncounted.
   */
  receive(channel: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]>
  /** Removes the messages for good; resolves when that is durable. */
  ack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /**
   * Gives the messages back at once, each to its place. Counts as a receive: a message that has had its
   * `maxReceiveCount` moves to its dead-letter queue with tags `dlq_source`, `dlq_reason` and `dlq_receive_count` (C2),
   * without expiry there.
   */
  nack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /** Sets the end of the leases to `leaseMs` from now. */
  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult>
  /** The messages that a receive would give next, without touching them. Empty for a queue that does not exist. */
  peek(channel: string, options: { maxMessages: number; maxBytes?: number }): Promise<readonly QueueMessage[]>
  /** Removes every message that is not leased, delayed ones included; resolves with how many. */
  purge(channel: string): Promise<number>
}

// ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface SubscribeOptions {
  /** Members of a group share: each message goes to one of them. Without a group a subscriber gets all. */
  readonly group?: string
  /** Aborting it closes the subscription. */
  readonly signal?: AbortSignal
}

export interface EventEngine {
  /** Hands the event to whoever is subscribed now; nothing is kept. @throws BrokerError CHANNEL_LIMIT */
  publish(channel: string, message: OutgoingMessage): Promise<void>
  /**
   * `pattern` is a channel or holds the tokens `*` (one) or a last `>` (one or more); wildcards never match the
   * broker's own channels (M8). The listener is called in the order of publishing and must not block: buffering, and
   * what happens when the buffer is full, is the subscriber's. Subscribing by name makes the channel (C1, C3).
   * @throws BrokerError CHANNEL_LIMIT
   */
  subscribe(pattern: string, options: SubscribeOptions, listener: (event: Message) => void): Promise<Subscription>
}

// ── Events stores ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface EventsStoreAppend extends OutgoingMessage {
  /** As for a queue (C5). */
  readonly deduplicationId?: string
  /** What a compacted log keeps the last entry of. */
  readonly key?: string
  /**
   * Append only if the last entry with `key` has this sequence, tombstones included; 0: only if there is none.
   * Otherwise CONFLICT and nothing is written.
   */
  readonly expectLastOfKey?: number
  /** Deletes `key` from a compacted log; the entry itself goes an hour later. */
  readonly tombstone?: boolean
}

export interface AppendResult extends SendResult {
  /** Milliseconds since the epoch; never before that of the entry with the previous sequence. */
  readonly timestamp: number
}

/** Where a subscription to an events store begins. */
export type EventsStoreStart =
  | { readonly from: 'new' }
  | { readonly from: 'first' }
  /** The last entry there is, then new ones. */
  | { readonly from: 'last' }
  | { readonly from: 'sequence'; readonly sequence: number }
  /** The first entry at or after this time, milliseconds since the epoch. */
  | { readonly from: 'time'; readonly timestamp: number }
  /** As `time`, this many milliseconds before now. */
  | { readonly from: 'delta'; readonly milliseconds: number }

export interface ReadOptions {
  /** The first sequence wanted. Exclusive with `fromTimestamp`; without either, the first entry there is. */
  readonly fromSequence?: number
  /** Entries at or after this time, milliseconds since the epoch. */
  readonly fromTimestamp?: number
  readonly maxMessages: number
  /** A soft limit on the bytes of one answer, as for {@link ReceiveOptions.maxBytes}. */
  readonly maxBytes?: number
}

export interface EventsStoreEngine {
  /** Resolves when the entry is durable. @throws BrokerError CONFLICT, CHANNEL_LIMIT */
  append(channel: string, message: EventsStoreAppend): Promise<AppendResult>
  /** Oldest first. Empty for a channel that does not exist. */
  read(channel: string, options: ReadOptions): Promise<readonly StoredEvent[]>
  /** The newest entries, newest first. Empty for a channel that does not exist. */
  readLatest(channel: string, options: { maxMessages: number; maxBytes?: number }): Promise<readonly StoredEvent[]>
  /** The last entry with this key, tombstones included; undefined when there is none. */
  getLast(channel: string, key: string): Promise<StoredEvent | undefined>
  /**
   * Delivers every entry from `start` on, in order, without gap or repeat. The next entry is delivered once the
   * listener's promise has resolved, so a slow listener holds back its own subscription only; entries that it has not
   * come to are read from the store, not kept in memory. Members of a group share one position, which lives as long as
   * the group has a member: an entry whose listener rejected or whose member closed before its promise resolved goes
   * to another member. Subscribing makes the channel (C1, C3).
   * @throws BrokerError CHANNEL_LIMIT
   */
  subscribe(
    channel: string,
    start: EventsStoreStart,
    options: SubscribeOptions,
    listener: (event: StoredEvent) => void | Promise<void>,
  ): Promise<Subscription>
}

// ── Commands and queries ────────────────────────────────────────────────────────────────────────────────────────────

export type RequestType = Extract<ChannelType, 'commands' | 'queries'>

export interface RequestOptions {
  /** How long to wait for the answer, in milliseconds; above 0. */
  readonly timeoutMs: number
  /**
   * Waits for nobody who is not subscribed yet: when every node that is known says that nobody is, NO_SUBSCRIBER comes at
   * once. Makes no channel. @default false
   */
  readonly onlyIfSubscribed?: boolean
  /** Withdraws the request, and aborts its handler's signal. */
  readonly signal?: AbortSignal
  /**
   * Aborted when the caller cannot get the answer any more. A request that no subscriber has taken is dropped then, and
   * rejects with the signal's reason; one that a subscriber has taken runs on.
   */
  readonly callerGone?: AbortSignal
}

export interface RequestEngine {
  /**
   * Hands the request to one subscriber of each group and resolves with the first reply. Somebody who subscribes while
   * the request waits unanswered and undelivered gets it too (M11).
   * @throws BrokerError NO_SUBSCRIBER, REQUEST_TIMEOUT, CHANNEL_LIMIT
   */
  request(type: RequestType, channel: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply>
  /**
   * Answers requests. Subscribers without a group form one group. A handler that throws rejects the request with a
   * general text. Subscribing makes the channel (C1, C3).
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
  /** Events stores only: keep the last entry of each key (entries without a key are all kept). */
  readonly compacted?: boolean
  /** Events stores only: entries older than this go, in milliseconds; 0 keeps all. Wins over the engine's own setting. */
  readonly maxAgeMs?: number
  /** Events stores only: the oldest entries go past this many bytes; 0 keeps all. Wins over the engine's own setting. */
  readonly maxBytes?: number
}

/** What an engine knows of a channel. Counts of stored types survive a restart (C3). */
export interface ChannelState {
  readonly type: ChannelType
  readonly name: string
  /** Messages accepted. */
  readonly incoming: number
  readonly incomingBytes: number
  /** Messages delivered, each delivery counted. */
  readonly outgoing: number
  readonly outgoingBytes: number
  readonly subscribers: number
  /** The last message in or out, or the last moment with a subscriber; milliseconds since the epoch, 0 for never. */
  readonly lastActivity: number
  readonly queue?: {
    /** Deliverable now. */
    readonly waiting: number
    readonly delayed: number
    /** Leased. */
    readonly inFlight: number
    readonly bytes: number
    /** Messages that moved from here to a dead-letter queue, since the channel began. */
    readonly deadLettered: number
    readonly expired: number
  }
  readonly eventsStore?: {
    /** 0 when empty. */
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
  /** Whether this node knows the channel. From memory, and quick: it is asked for every message. */
  exists(type: ChannelType, name: string): boolean
  /** The names of every channel, the broker's own included, in the order of {@link list}. Cheap: it asks for no state. */
  names(type?: ChannelType): Promise<readonly ChannelName[]>
  /** Every channel there is, the broker's own included, in the order of their names, for one type or all. */
  list(type?: ChannelType): Promise<readonly ChannelState[]>
  /** The states of some channels, in the same order; one that does not exist is left out. A channel that fails does not fail the others. */
  states(channels: readonly ChannelName[]): Promise<readonly ChannelState[]>
  info(type: ChannelType, name: string): Promise<ChannelState | undefined>
  /**
   * False when it exists already; options of an existing channel are brought up to date.
   * @throws BrokerError CHANNEL_LIMIT
   */
  create(type: ChannelType, name: string, options?: ChannelOptions): Promise<boolean>
  /** Removes the channel with all it holds; subscriptions to it go on and see what comes after. False when there is none. */
  delete(type: ChannelType, name: string): Promise<boolean>
}
