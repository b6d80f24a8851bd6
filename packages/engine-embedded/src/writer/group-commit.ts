import type Database from 'better-sqlite3'

import { isDamage, isFatal, isFull } from '../store/sqlite.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { ChannelTable } from './channel-table.ts'
import type { OperationRunner } from './operation-runner.ts'
import type { Operation, OperationRefusal, Result } from './operations.ts'
import type { SkippedChannels } from './refusals.ts'
import { DamagedError, placeOf, refusalOf, RefusedError } from './refusals.ts'
import type { Space } from './space.ts'
import type { GroupReply } from './thread-messages.ts'
import { packResults } from './thread-messages.ts'
import type { WalFile } from './wal.ts'

const FULL: OperationRefusal = { kind: 'refused', code: 'DISK_FULL', message: 'the disk is full', details: {} }

/** The outcome of a group's transactions, in addition to their results. */
interface Outcome {
  readonly changed: Map<string, StoredChannel>
  readonly removed: Map<string, StoredChannel>
  wrote: boolean
}

/**
 * Commits operations in groups: one transaction and one sync for all operations that wait. If a group fails, its
 * operations are tried one by one, so that only the failing one is rejected. Errors after which the connection is not
 * reliable are thrown.
 */
export class GroupCommit {
  readonly #channels: ChannelTable
  readonly #runner: OperationRunner
  readonly #skipped: SkippedChannels
  readonly #space: Space
  readonly #begin
  readonly #commit
  readonly #rollback
  readonly #totalChanges
  #changes: number
  readonly #database: Database.Database
  readonly #wal: WalFile
  readonly #atCommit: (when: 'before' | 'after') => void

  constructor(
    database: Database.Database,
    channels: ChannelTable,
    runner: OperationRunner,
    wal: WalFile,
    skipped: SkippedChannels,
    space: Space,
    atCommit: (when: 'before' | 'after') => void,
  ) {
    this.#database = database
    this.#channels = channels
    this.#runner = runner
    this.#wal = wal
    this.#skipped = skipped
    this.#space = space
    this.#atCommit = atCommit
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#rollback = database.prepare('ROLLBACK')
    this.#totalChanges = database.prepare<[], { changes: number }>('SELECT total_changes() AS changes')
    // Opening the store changed rows; they do not belong to the first group.
    this.#changes = this.#totalChanges.get()?.changes ?? 0
  }

  run(operations: readonly Operation[]): GroupReply {
    const began = performance.now()
    const outcome: Outcome = { changed: new Map(), removed: new Map(), wrote: false }
    let results = this.#together(operations, outcome)
    let committed = operations.length
    if (!results) {
      results = []
      committed = 0
      for (const operation of operations) {
        try {
          results.push(...this.#transaction([operation], outcome))
          committed = 1
        } catch (alone) {
          if (isFatal(alone)) throw alone
          results.push(this.#refusal(operation, alone))
        }
      }
    }
    return {
      kind: 'group',
      results: packResults(results),
      changed: [...outcome.changed.values()],
      removed: [...outcome.removed.values()],
      durationMs: performance.now() - began,
      committed,
      wrote: outcome.wrote,
    }
  }

  /**
   * Runs all operations in one transaction; returns undefined if it fails. Tries again if the disk was full and space
   * could be freed.
   */
  #together(operations: readonly Operation[], outcome: Outcome): (Result | OperationRefusal)[] | undefined {
    try {
      return this.#transaction(operations, outcome)
    } catch (error) {
      if (isFatal(error)) throw error
      return isFull(error) && this.#space.handleFull() ? this.#together(operations, outcome) : undefined
    }
  }

  #refusal(operation: Operation, error: unknown): OperationRefusal {
    const damaged =
      error instanceof DamagedError ? error : isDamage(error) && new DamagedError(placeOf(operation), undefined, error)
    if (!damaged) return refusalOf(error)
    this.#skipped.note(damaged)
    return refusalOf(damaged)
  }

  #transaction(operations: readonly Operation[], outcome: Outcome): (Result | OperationRefusal)[] {
    const results: (Result | OperationRefusal)[] = []
    this.#begin.run()
    try {
      for (const operation of operations) results.push(this.#runOne(operation))
      this.#runner.flush()
      this.#channels.flush()
      this.#atCommit('before')
      this.#commit.run()
    } catch (error) {
      this.#runner.discard()
      this.#channels.rollback()
      // A full disk may have ended the transaction already.
      if (this.#database.inTransaction) this.#rollback.run()
      this.#hasChanged()
      throw error
    }
    if (this.#hasChanged()) {
      this.#wal.sync()
      outcome.wrote = true
    }
    this.#atCommit('after')
    this.#note(outcome)
    return results
  }

  /** Returns whether rows were changed since the last call. A transaction without changes needs no sync. */
  #hasChanged(): boolean {
    const before = this.#changes
    this.#changes = this.#totalChanges.get()?.changes ?? 0
    return this.#changes !== before
  }

  #note({ changed, removed }: Outcome): void {
    const channels = this.#channels.commit()
    for (const channel of channels.removed) {
      const name = `${channel.type} ${channel.name}`
      changed.delete(name)
      removed.set(name, channel)
    }
    for (const channel of channels.changed) {
      const name = `${channel.type} ${channel.name}`
      removed.delete(name)
      changed.set(name, channel)
    }
  }

  #runOne(operation: Operation): Result | OperationRefusal {
    if (this.#space.refuses(operation.kind) && !this.#runner.isDone(operation)) return FULL
    if (operation.kind === 'probe' && !this.#space.doubtful) return { kind: 'probe' }
    try {
      return this.#runner.run(operation)
    } catch (error) {
      if (error instanceof RefusedError) return error.refusal
      throw error
    }
  }
}
