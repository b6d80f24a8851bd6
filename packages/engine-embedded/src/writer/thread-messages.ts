import type { DamagedPlace } from '../store/damage.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { PackedResults, Post } from './post.ts'

/** The settings of the writer. */
export interface WriterSettings {
  readonly file: string
  readonly wal: string
  readonly reserve: string
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  readonly durableGroupMs: number
  readonly maxDurableGroups: number
  /** `true` after a failure: the writer copies the whole WAL back and syncs it again before the first operation. */
  readonly recover: boolean
  /**
   * Tests only: while the shared number is not 0, commits fail. 1: like a full disk. 2: like a failed sync. 3: like a
   * failed sync after everything was written.
   */
  readonly faults: Int32Array | undefined
}

/** The data of a new thread. Its first message is the {@link WriterSettings}. */
export interface WriterThreadData {
  /** The folder for compiled code; `undefined` if the process has none. */
  readonly compileCache: string | undefined
}

export type WriterRequest = Post | { readonly close: true }

export type WriterReply = ReadyReply | GroupReply | DamagedReply | FailedReply | { readonly kind: 'closed' }

/** The store is open, and the writer accepts operations. */
export interface ReadyReply {
  readonly kind: 'ready'
  /** `true` if the disk is full: no messages are accepted yet. */
  readonly full: boolean
}

/**
 * The result of one commit: a result for every operation in order, and the current state of the channels it changed.
 */
export interface GroupReply {
  readonly kind: 'group'
  readonly results: PackedResults
  readonly changed: readonly StoredChannel[]
  readonly removed: readonly StoredChannel[]
  readonly durationMs: number
  /** The number of operations in the commit; the others were refused or tried alone. */
  readonly committed: number
  /** `false` if there was nothing to write, and so nothing to sync. */
  readonly wrote: boolean
}

/** Damage without a refused operation. */
export interface DamagedReply {
  readonly kind: 'damaged'
  readonly place: DamagedPlace
  readonly reason: string
}

/** The connection was closed; the outcome of running operations is unknown. */
export interface FailedReply {
  readonly kind: 'failed'
  readonly code: string
  readonly message: string
}
