import type { ChannelOptions, DeadLetterReason, SettingsEntry, StoredType } from '@signalbox/broker-core/engine'

import type { DamagedPlace } from '../store/damage.ts'
import type { EntryRow, QueueRow } from '../store/message-rows.ts'

/**
 * The operations that the main thread submits to the writer. Each is atomic; a group of them shares one transaction and
 * one sync. `now` is the main thread's wall clock, in ms since the epoch. Operations on leased messages include the
 * channel's id in addition to its name, so that they cannot affect a channel that was deleted and created again.
 */
export type Operation =
  | SendOperation
  | AppendOperation
  | SettleOperation
  | ExpireOperation
  | ReleaseOperation
  | PromoteOperation
  | ExpireDelayedOperation
  | PurgeOperation
  | GroupQueueOperation
  | JoinGroupOperation
  | StorePositionsOperation
  | CreateChannelOperation
  | DeleteChannelOperation
  | SweepOperation
  | ProbeOperation
  | ActivityOperation
  | UseSettingsOperation

/** Stores all messages or none. */
export interface SendOperation {
  readonly kind: 'send'
  readonly channel: string
  readonly now: number
  readonly messages: readonly QueueRow[]
}

export interface AppendOperation {
  readonly kind: 'append'
  readonly channel: string
  readonly now: number
  readonly entry: EntryRow
}

/** Removes acknowledged messages permanently. */
export interface SettleOperation {
  readonly kind: 'settle'
  readonly channel: string
  readonly channelId: number
  readonly sequences: readonly number[]
}

/** Ends expired messages by the settings of their queue: removes them, or moves them to the dead-letter queue. */
export interface ExpireOperation {
  readonly kind: 'expire'
  readonly channel: string
  readonly channelId: number
  readonly now: number
  readonly sequences: readonly number[]
}

export interface Release {
  readonly sequence: number
  readonly receiveCount: number
  /** The queue that the message moves to; empty if it remains. */
  readonly deadLetterQueue: string
  readonly reason: DeadLetterReason
  /** The time from which a message that remains is deliverable; 0 means immediately. */
  readonly dueAt: number
}

/** Ends leases: stores the receive counts, delays messages, and moves others to their dead-letter queues. */
export interface ReleaseOperation {
  readonly kind: 'release'
  readonly channel: string
  readonly channelId: number
  readonly now: number
  readonly releases: readonly Release[]
}

/** Makes delayed messages deliverable, in the order of their due times. */
export interface PromoteOperation {
  readonly kind: 'promote'
  readonly now: number
  readonly limit: number
}

export interface ExpireDelayedOperation {
  readonly kind: 'expireDelayed'
  readonly now: number
  readonly limit: number
}

/**
 * Removes up to `limit` messages of a queue with sequences after `after` and up to `upTo`, except those in `except`.
 */
export interface PurgeOperation {
  readonly kind: 'purge'
  readonly channel: string
  readonly channelId: number
  readonly delayed: boolean
  readonly after: number
  readonly upTo: number
  readonly limit: number
  readonly except: readonly number[]
}

/**
 * Runs one step, of up to `limit` messages, of giving a queue groups or of removing them. Repeat it until the result has
 * no `more`.
 */
export interface GroupQueueOperation {
  readonly kind: 'groupQueue'
  readonly channel: string
  readonly channelId: number
  readonly grouped: boolean
  readonly limit: number
}

/** Returns the position of a durable group; stores `start` if it has none. */
export interface JoinGroupOperation {
  readonly kind: 'joinGroup'
  readonly channel: string
  readonly channelId: number
  readonly group: string
  /** The position before the first entry to deliver. */
  readonly start: number
  readonly now: number
}

/** Stores positions of durable groups that have subscribers, or had some until now. */
export interface StorePositionsOperation {
  readonly kind: 'storePositions'
  readonly now: number
  readonly positions: readonly GroupPosition[]
}

export interface GroupPosition {
  readonly channel: string
  readonly channelId: number
  readonly group: string
  /** The sequence up to which every entry was handled. */
  readonly position: number
  /** `true` also stores the time, from which the position is kept for a while. */
  readonly used: boolean
}

export interface CreateChannelOperation {
  readonly kind: 'createChannel'
  readonly type: StoredType
  readonly channel: string
  /** Only options of the type: see `optionsOf`. */
  readonly options: ChannelOptions
}

export interface DeleteChannelOperation {
  readonly kind: 'deleteChannel'
  readonly type: StoredType
  readonly channel: string
}

/**
 * Runs one step each of retention by age, tombstones, old deduplication ids, positions of durable groups without
 * subscribers, and rows of deleted channels.
 */
export interface SweepOperation {
  readonly kind: 'sweep'
  readonly now: number
}

/** Writes and removes a little data, to find out whether the disk accepts writes. */
interface ProbeOperation {
  readonly kind: 'probe'
}

/** Stores delivery counts, which the main thread keeps. */
export interface ActivityOperation {
  readonly kind: 'activity'
  readonly channels: readonly ChannelActivity[]
}

/** Replaces the settings of channels that the writer applies. Writes nothing. */
export interface UseSettingsOperation {
  readonly kind: 'useSettings'
  readonly entries: readonly SettingsEntry[]
}

export interface ChannelActivity {
  readonly type: StoredType
  readonly name: string
  readonly id: number
  readonly outgoing: number
  readonly outgoingBytes: number
  readonly lastActivity: number
}

export type Result =
  | SendOperationResult
  | AppendOperationResult
  | SettleOperationResult
  | ExpireOperationResult
  | ReleaseOperationResult
  | PromoteOperationResult
  | ExpireDelayedOperationResult
  | PurgeOperationResult
  | GroupQueueOperationResult
  | JoinGroupOperationResult
  | StorePositionsOperationResult
  | CreateChannelOperationResult
  | DeleteChannelOperationResult
  | SweepOperationResult
  | ProbeOperationResult
  | ActivityOperationResult
  | UseSettingsOperationResult

/** The result of a send, in the order of the messages. For a duplicate, `duplicates` has the id of the first send. */
export interface SendOperationResult {
  readonly kind: 'send'
  readonly channelId: number
  readonly sequences: readonly number[]
  readonly duplicates: readonly (string | undefined)[] | undefined
}

export interface AppendOperationResult {
  readonly kind: 'append'
  readonly channelId: number
  readonly sequence: number
  readonly timestamp: number
  readonly duplicateOf: string | undefined
}

export interface SettleOperationResult {
  readonly kind: 'settle'
}

/** The messages that moved to a dead-letter queue. */
export interface ExpireOperationResult {
  readonly kind: 'expire'
  readonly moved: readonly PlacedMessage[]
}

/** The messages that moved to a dead-letter queue. */
export interface ReleaseOperationResult {
  readonly kind: 'release'
  readonly moved: readonly PlacedMessage[]
}

export interface PlacedMessage {
  readonly channel: string
  readonly channelId: number
  readonly sequence: number
}

export interface PromoteOperationResult {
  readonly kind: 'promote'
  readonly placed: readonly PlacedMessage[]
  /** The due time of the next delayed message; undefined if there is none. */
  readonly nextDue: number | undefined
}

export interface ExpireDelayedOperationResult {
  readonly kind: 'expireDelayed'
  /** The messages that moved to a dead-letter queue. */
  readonly moved: readonly PlacedMessage[]
}

export interface PurgeOperationResult {
  readonly kind: 'purge'
  readonly removed: number
  /** The sequence to continue from; undefined if no message is left. */
  readonly next: number | undefined
}

export interface GroupQueueOperationResult {
  readonly kind: 'groupQueue'
  readonly more: boolean
}

export interface JoinGroupOperationResult {
  readonly kind: 'joinGroup'
  /** undefined if the channel was deleted, or created again. */
  readonly position: number | undefined
}

export interface StorePositionsOperationResult {
  readonly kind: 'storePositions'
}

export interface CreateChannelOperationResult {
  readonly kind: 'createChannel'
  readonly created: boolean
}

export interface DeleteChannelOperationResult {
  readonly kind: 'deleteChannel'
  readonly deleted: boolean
}

/** The result of a sweep. `more` is true if there is more to sweep now. */
export interface SweepOperationResult {
  readonly kind: 'sweep'
  readonly more: boolean
}

export interface ProbeOperationResult {
  readonly kind: 'probe'
}

export interface ActivityOperationResult {
  readonly kind: 'activity'
}

export interface UseSettingsOperationResult {
  readonly kind: 'useSettings'
}

/** The refusal of an operation; it has written nothing. */
export interface OperationRefusal {
  readonly kind: 'refused'
  readonly code: 'QUEUE_FULL' | 'CONFLICT' | 'GROUP_LIMIT' | 'DISK_FULL' | 'DAMAGED' | 'FAILED'
  readonly message: string
  readonly details: Readonly<Record<string, string | number>>
  /** The place of the damage, with `DAMAGED`. */
  readonly place?: DamagedPlace | undefined
}

export type OperationKind = Operation['kind']
export type OperationOf<K extends OperationKind> = Extract<Operation, { kind: K }>
export type ResultOf<K extends OperationKind> = Extract<Result, { kind: K }>

export function isResultOf<K extends OperationKind>(kind: K, result: Result): result is ResultOf<K> {
  return result.kind === kind
}
