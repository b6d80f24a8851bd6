import type { ChannelType } from '../channel.ts'

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
  /** The time of the last message in or out, or the last time with a subscriber, in ms since the epoch; 0 means never. */
  readonly lastActivity: number
  readonly queue?:
    | {
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
    | undefined
  readonly eventsStore?:
    | {
        /** The sequence of the first stored entry; 0 when empty. */
        readonly firstSequence: number
        readonly lastSequence: number
        readonly entries: number
        readonly bytes: number
      }
    | undefined
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
