import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { closeSync, fdatasyncSync, openSync } from 'node:fs'

/**
 * The WAL, to be synced after a commit. SQLite would do it by itself (`synchronous=FULL`), but with fsync, which writes the
 * file's times as well, and so the file system's journal: a third of the time of a sync.
 *
 * The descriptor is our own. That does no harm: SQLite locks the data file and the WAL's index, never the WAL, so that
 * closing it drops no lock; and the kernel tells a failed write to each descriptor that was open when it failed.
 */
export class WalFile {
  readonly #descriptor: number

  /** SQLite makes the file when it first reads, and keeps it as long as it has the store open. */
  constructor(file: string) {
    this.#descriptor = openSync(file, 'r+')
  }

  /** @throws SqliteError SQLITE_IOERR_FSYNC, as SQLite's own sync does */
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
