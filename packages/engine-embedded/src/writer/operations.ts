import type { DamagedPlace } from '../store/damage.ts'
import type { StoredType } from '../store/stored-channel.ts'

/**
 * What the main thread asks of the writer. Each is atomic; a group of them shares one transaction and one sync. `now` is the wall clock of
 * the main thread, milliseconds since the epoch. Operations on leased messages carry the channel's id beside its name,
 * so that they cannot touch a channel that was deleted and made again in between.
 */
export type Operation =
  | SendOperation
  | AppendOperation
  | SettleOperation
  | ReleaseOperation
  | PromoteOperation
  | ExpireDelayedOperation
  | PurgeOperation
  | CreateChannelOperation
  | DeleteChannelOperation
  | SweepOperation
  | ProbeOperation
  | ActivityOperation

/** A new message as it is bound to its row: named fields would be copied with their names between the threads. */
export type QueueColumns = readonly [
  id: string,
  clientId: string,
  timestamp: number,
  /** Bytes of body, metadata and tags. */
  size: number,
  metadata: string,
  /** JSON; empty for none. */
  tags: string,
  /** 0: never. */
  expiresAt: number,
  maxReceiveCount: number,
  deadLetterQueue: string,
  body: Uint8Array,
]

export interface NewQueueMessage {
  readonly columns: QueueColumns
  /** 0: at once. */
  readonly dueAt: number
  readonly deduplicationId?: string
}

/** All messages are stored or none. */
export interface SendOperation {
  readonly kind: 'send'
  readonly channel: string
  readonly now: number
  readonly messages: readonly NewQueueMessage[]
}

/** As {@link QueueColumns}; the timestamp is the writer's to give. */
export type EntryColumns = readonly [
  id: string,
  clientId: string,
  size: number,
  metadata: string,
  tags: string,
  key: string | null,
  tombstone: 0 | 1,
  body: Uint8Array,
]

export interface NewEntry {
  readonly columns: EntryColumns
  readonly expectLastOfKey?: number
  readonly deduplicationId?: string
}

export interface AppendOperation {
  readonly kind: 'append'
  readonly channel: string
  readonly now: number
  readonly entry: NewEntry
}

/** Removes messages for good: acknowledged, or past their expiry. */
export interface SettleOperation {
  readonly kind: 'settle'
  readonly channel: string
  readonly channelId: number
  readonly sequences: readonly number[]
  readonly expired: boolean
}

export interface Release {
  readonly sequence: number
  readonly receiveCount: number
  /** Where the message moves to; empty: it stays. */
  readonly deadLetterQueue: string
}

/** Ends leases: stores the receive counts, and moves what has had its deliveries to the dead-letter queue. */
export interface ReleaseOperation {
  readonly kind: 'release'
  readonly channel: string
  readonly channelId: number
  readonly now: number
  readonly releases: readonly Release[]
}

/** Makes delayed messages deliverable, those due first first. */
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

/** Removes up to `limit` messages of a queue after sequence `after`, up to `upTo`, but for `except`. */
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

export interface CreateChannelOperation {
  readonly kind: 'createChannel'
  readonly type: StoredType
  readonly channel: string
  readonly options: {
    readonly compacted: boolean | undefined
    readonly maxAgeMs: number | undefined
    readonly maxBytes: number | undefined
  }
}

export interface DeleteChannelOperation {
  readonly kind: 'deleteChannel'
  readonly type: StoredType
  readonly channel: string
}

/** Retention by age, tombstones, old deduplication ids, rows of deleted channels: a piece of each. */
export interface SweepOperation {
  readonly kind: 'sweep'
  readonly now: number
}

/** Writes and removes a little, to see whether the disk takes it. */
export interface ProbeOperation {
  readonly kind: 'probe'
}

/** Delivery counts, which the main thread keeps. */
export interface ActivityOperation {
  readonly kind: 'activity'
  readonly channels: readonly ChannelActivity[]
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
  | ReleaseOperationResult
  | PromoteOperationResult
  | ExpireDelayedOperationResult
  | PurgeOperationResult
  | CreateChannelOperationResult
  | DeleteChannelOperationResult
  | SweepOperationResult
  | ProbeOperationResult
  | ActivityOperationResult

/** In the order of the messages; `duplicates` holds the id of the first send where a message was a duplicate. */
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

/** Messages that now stand in a dead-letter queue. */
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
  /** When the next one is due; undefined when none is delayed. */
  readonly nextDue: number | undefined
}

export interface ExpireDelayedOperationResult {
  readonly kind: 'expireDelayed'
  readonly removed: number
}

export interface PurgeOperationResult {
  readonly kind: 'purge'
  readonly removed: number
  /** Where to go on; undefined when nothing is left. */
  readonly next: number | undefined
}

export interface CreateChannelOperationResult {
  readonly kind: 'createChannel'
  readonly created: boolean
}

export interface DeleteChannelOperationResult {
  readonly kind: 'deleteChannel'
  readonly deleted: boolean
}

/** `more`: there is more to sweep now. */
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

/** An operation that could not be carried out; nothing of it was written. */
export interface OperationRefusal {
  readonly kind: 'refused'
  readonly code: 'QUEUE_FULL' | 'CONFLICT' | 'DISK_FULL' | 'DAMAGED' | 'FAILED'
  readonly message: string
  readonly details: Readonly<Record<string, string | number>>
  /** With `DAMAGED`. */
  readonly place?: DamagedPlace
}

export type OperationKind = Operation['kind']
export type OperationOf<K extends OperationKind> = Extract<Operation, { kind: K }>
export type ResultOf<K extends OperationKind> = Extract<Result, { kind: K }>

export function isResultOf<K extends OperationKind>(kind: K, result: Result): result is ResultOf<K> {
  return result.kind === kind
}
