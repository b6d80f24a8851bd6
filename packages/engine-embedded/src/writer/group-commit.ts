import type Database from 'better-sqlite3'

import { isFatal } from '../store/sqlite-code.ts'
import type { ChannelTable } from './channel-table.ts'
import type { OperationRunner } from './operation-runner.ts'
import type { GroupReply, Operation, Refusal, Result } from './operations.ts'
import { packResults } from './post.ts'
import { RefusedError, refusalOf } from './refusals.ts'

/**
 * Commits operations in groups: one transaction and one sync for all that are waiting. When a group fails, its
 * operations are tried again one by one, so that only the guilty one fails. An error after which the connection cannot
 * be trusted passes through.
 */
export class GroupCommit {
  readonly #channels: ChannelTable
  readonly #runner: OperationRunner
  readonly #begin
  readonly #commit
  readonly #rollback
  readonly #totalChanges
  #changes: number
  readonly #database: Database.Database
  readonly #atCommit: (when: 'before' | 'after') => void

  constructor(
    database: Database.Database,
    channels: ChannelTable,
    runner: OperationRunner,
    atCommit: (when: 'before' | 'after') => void,
  ) {
    this.#database = database
    this.#channels = channels
    this.#runner = runner
    this.#atCommit = atCommit
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
    this.#rollback = database.prepare('ROLLBACK')
    this.#totalChanges = database.prepare<[], { changes: number }>('SELECT total_changes() AS changes')
    // Opening the store has changed rows already; they are not the first group's.
    this.#changes = this.#totalChanges.get()?.changes ?? 0
  }

  run(operations: readonly Operation[]): GroupReply {
    const began = performance.now()
    const changed = new Map<string, GroupReply['changed'][number]>()
    const removed = new Map<string, GroupReply['changed'][number]>()
    let results: (Result | Refusal)[]
    let committed = operations.length
    try {
      results = this.#transaction(operations, changed, removed)
    } catch (error) {
      if (isFatal(error)) throw error
      results = []
      committed = 0
      for (const operation of operations) {
        try {
          results.push(...this.#transaction([operation], changed, removed))
          committed = 1
        } catch (alone) {
          if (isFatal(alone)) throw alone
          results.push(refusalOf(alone))
        }
      }
    }
    return {
      kind: 'group',
      results: packResults(results),
      changed: [...changed.values()],
      removed: [...removed.values()],
      durationMs: performance.now() - began,
      committed,
      wrote: this.#wrote(),
    }
  }

  #transaction(
    operations: readonly Operation[],
    changed: Map<string, GroupReply['changed'][number]>,
    removed: Map<string, GroupReply['changed'][number]>,
  ): (Result | Refusal)[] {
    const results: (Result | Refusal)[] = []
    this.#begin.run()
    try {
      for (const operation of operations) results.push(this.#runOne(operation))
      this.#runner.flush()
      this.#channels.flush()
      this.#atCommit('before')
      this.#commit.run()
      this.#atCommit('after')
    } catch (error) {
      this.#runner.discard()
      this.#channels.rollback()
      // A full disk may have ended the transaction already.
      if (this.#database.inTransaction) this.#rollback.run()
      throw error
    }
    const outcome = this.#channels.commit()
    for (const channel of outcome.removed) {
      const name = `${channel.type} ${channel.name}`
      changed.delete(name)
      removed.set(name, channel)
    }
    for (const channel of outcome.changed) {
      const name = `${channel.type} ${channel.name}`
      removed.delete(name)
      changed.set(name, channel)
    }
    return results
  }

  /** Whether rows were changed since the last group; a transaction without any is not synced. */
  #wrote(): boolean {
    const before = this.#changes
    this.#changes = this.#totalChanges.get()?.changes ?? 0
    return this.#changes !== before
  }

  #runOne(operation: Operation): Result | Refusal {
    try {
      return this.#runner.run(operation)
    } catch (error) {
      if (error instanceof RefusedError) return error.refusal
      throw error
    }
  }
}
