import type { ChannelEngine } from './channel-engine.ts'
import type { EventEngine } from './event-engine.ts'
import type { EventsStoreEngine } from './events-store-engine.ts'
import type { QueueEngine } from './queue-engine.ts'
import type { SettingsEntry } from '../settings/channel-settings.ts'
import type { SettingsTable } from '../settings/settings-table.ts'
import type { RequestEngine } from './request-engine.ts'

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
  /** The settings of channels, empty at first. The engine reads them when it needs them: no message keeps a copy. */
  readonly settings: SettingsTable
  /**
   * Returns the reason why an entry cannot be in force now; undefined if there is none. Operators' entries are checked
   * before they are written.
   */
  settingProblem(entry: SettingsEntry): Promise<string | undefined>
  readonly queues: QueueEngine
  readonly events: EventEngine
  readonly eventsStore: EventsStoreEngine
  readonly requests: RequestEngine
  readonly channels: ChannelEngine
  health(): Promise<EngineHealth>
  stats(): Promise<EngineStats>
  /** This node of a cluster. Absent for an engine of one node. */
  readonly node?: EngineNode
  /** Returns the other nodes of the cluster that are alive. Absent for an engine of one node. */
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
  /** `true` when `peek` omits leased messages, and those that wait for their next attempt. */
  readonly peekHidesLeased: boolean
  /** `true` when a lease can be settled on a node other than the one that granted it. */
  readonly leaseSurvivesNode: boolean
  /**
   * `true` when messages are on other machines: calls fail while those are unreachable, and succeed when they are back.
   */
  readonly remoteStorage: boolean
  /**
   * `true` when `leased` counts the leases of all nodes, so that the limits of consumers are exact. `false`: it counts
   * those of its node, and each node has an equal share of the limits.
   */
  readonly exactConsumerLimits: boolean
  /** The highest number of delayed messages in one queue; 0 means unlimited. */
  readonly maxDelayedPerQueue: number
  /** `true` when expired messages are removed, some time after their expiry, even while no broker node runs. */
  readonly expiryWithoutNode: boolean
  /**
   * `true` when the deduplication window that is in force at a repeated send decides. `false`: the window belongs to the
   * channel's storage, and a change of the settings takes effect shortly after it.
   */
  readonly deduplicationPerMessage: boolean
  /**
   * The number of partitions that the groups of a queue share; 0 means that each group is on its own. Groups of the same
   * partition wait for each other, and share the limit of leased messages.
   */
  readonly groupPartitions: number
}

export interface EngineLimits {
  /** The maximum message size (body, metadata and tags together), in bytes. */
  readonly maxMessageBytes: number
  /** The maximum number of channels, all types together. Channels of the broker do not count. */
  readonly maxChannels: number
  /**
   * The number of queues and events stores that it creates at the same time without a delay of other calls; 0 means
   * unlimited.
   */
  readonly creationsAtOnce: number
}

export interface EngineHealth {
  readonly ok: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
}

/** The node of a cluster that this process is. */
export interface EngineNode {
  /** The id under which other nodes list it; it changes with each start. */
  readonly id: string
  /** `true` while the clock differs so much from that of the servers that the node must not act on due times. */
  readonly clockSkewed: boolean
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
  /** Messages that returned to their queue for another attempt, by a nack or by the end of a lease. */
  readonly retried: number
  /** Messages that were removed because they expired. */
  readonly expired: number
}
