import type { DamagedPlace } from '../store/damage.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { PackedResults, Post } from './post.ts'

/** How the writer is set up. */
export interface WriterSettings {
  readonly file: string
  readonly wal: string
  readonly reserve: string
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  /** True after a failure: everything in the WAL is copied back and synced anew before the first operation. */
  readonly recover: boolean
  /**
   * Tests only: while the shared number is not 0, commits fail; 1 as on a full disk, 2 as by a failed sync, 3 likewise
   * but with everything written.
   */
  readonly faults: Int32Array | undefined
}

export type WriterRequest = Post | { readonly close: true }

export type WriterReply = ReadyReply | GroupReply | DamagedReply | FailedReply | { readonly kind: 'closed' }

/** The store is open; the writer takes operations. */
export interface ReadyReply {
  readonly kind: 'ready'
}

/** One commit: a result for every operation in order, and the channels it changed as they are now. */
export interface GroupReply {
  readonly kind: 'group'
  readonly results: PackedResults
  readonly changed: readonly StoredChannel[]
  readonly removed: readonly StoredChannel[]
  readonly durationMs: number
  /** Operations that shared the commit; the rest were refused or retried alone. */
  readonly committed: number
  /** False when there was nothing to write, and so nothing to sync. */
  readonly wrote: boolean
}

/** Damage that no operation was refused for. */
export interface DamagedReply {
  readonly kind: 'damaged'
  readonly place: DamagedPlace
  readonly reason: string
}

/** The connection had to be given up; what became of the operations under way is unknown. */
export interface FailedReply {
  readonly kind: 'failed'
  readonly code: string
  readonly message: string
}
