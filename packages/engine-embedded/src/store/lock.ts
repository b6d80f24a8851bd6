import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'

import { EmbeddedEngineError } from '../errors.ts'
import { touchFile } from './files.ts'
import { sqliteCode } from './sqlite-code.ts'

/**
 * Locks the store against other processes: an exclusive transaction on a small separate database. The kernel releases
 * the lock when the process ends for any reason. An exclusive lock on the data file would block the engine's own
 * reader, and files with process ids fail in containers, where every process is number 1.
 */
export class StoreLock {
  readonly #database: Database.Database

  /** Takes the lock. @throws EmbeddedEngineError STORE_LOCKED, STORE_UNWRITABLE, STORE_DAMAGED */
  constructor(file: string) {
    let database: Database.Database | undefined
    try {
      touchFile(file)
      database = new Database(file, { timeout: 0 })
      database.exec('BEGIN EXCLUSIVE')
      this.#database = database
    } catch (error) {
      database?.close()
      throw refusal(file, error)
    }
  }

  release(): void {
    if (this.#database.open) this.#database.close()
  }
}

function refusal(file: string, error: unknown): EmbeddedEngineError {
  const code = sqliteCode(error)
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return new EmbeddedEngineError(
      'STORE_LOCKED',
      `the store is in use by another process (${file} is locked); stop that process, or choose another folder`,
      file,
      { cause: error },
    )
  }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new EmbeddedEngineError(
      'STORE_DAMAGED',
      `${file} is not the lock of a Signalbox store; if no process uses this store, delete that file and start again`,
      file,
      { cause: error },
    )
  }
  return new EmbeddedEngineError('STORE_UNWRITABLE', `cannot lock the store: ${file}: ${messageOf(error)}`, file, {
    cause: error,
  })
}
