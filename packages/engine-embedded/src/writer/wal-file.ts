import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { closeSync, fdatasyncSync, openSync } from 'node:fs'

/**
 * The WAL file, synced after a commit. SQLite can sync it (`synchronous=FULL`), but uses fsync, which also writes the
 * file's times and therefore the file system's journal: a third of a sync's duration.
 *
 * This class opens its own descriptor. That is safe: SQLite locks the data file and the WAL index, never the WAL, so
 * that closing the descriptor releases no lock; and the kernel reports a failed write to each descriptor that was open
 * at that time.
 */
export class WalFile {
  readonly #descriptor: number

  /** Opens the file. SQLite creates it with its first read and keeps it while the store is open. */
  constructor(file: string) {
    this.#descriptor = openSync(file, 'r+')
  }

  /** Syncs the file. @throws SqliteError SQLITE_IOERR_FSYNC, like SQLite's own sync */
  sync(): void {
    try {
      fdatasyncSync(this.#descriptor)
    } catch (error) {
      throw new Database.SqliteError(`the WAL cannot be synced: ${messageOf(error)}`, 'SQLITE_IOERR_FSYNC')
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
