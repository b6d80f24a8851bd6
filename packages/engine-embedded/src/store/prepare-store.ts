import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { renameSync, rmSync } from 'node:fs'

import { EmbeddedEngineError } from '../errors.ts'
import { checkDataFile, damaged } from './check-file.ts'
import { openReadConnection } from './connections.ts'
import { Reserve } from '../writer/reserve.ts'
import type { StoreFiles } from './files.ts'
import { makeFolder, protectFiles, syncPath, touchFile } from './files.ts'
import { StoreLock } from './lock.ts'
import { APPLICATION_ID, PAGE_BYTES, SCHEMA, SCHEMA_VERSION } from './schema.ts'
import { sqliteCode } from './sqlite-code.ts'
import { loadChannels } from './stored-channel.ts'

/**
 * Locks a store, and checks its data file or creates a new one.
 * @throws EmbeddedEngineError STORE_*
 */
export function prepareStore(files: StoreFiles): StoreLock {
  try {
    makeFolder(files.folder)
    protectFiles(files.folder)
    new Reserve(files.reserve).freeToOpen()
  } catch (error) {
    throw new EmbeddedEngineError(
      'STORE_UNWRITABLE',
      `cannot create the store's folder: ${files.folder}: ${messageOf(error)}`,
      files.folder,
      { cause: error },
    )
  }
  const lock = new StoreLock(files.lock)
  try {
    if (!checkDataFile(files.data, files.wal)) createDataFile(files)
    checkReadable(files)
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Creates the data file under another name and renames it, so that a crash leaves either a complete file or none. */
export function createDataFile(files: Pick<StoreFiles, 'data' | 'folder'>): void {
  const draft = `${files.data}-new`
  try {
    for (const leftover of [draft, `${draft}-wal`, `${draft}-shm`, `${draft}-journal`])
      rmSync(leftover, { force: true })
    touchFile(draft)
    const database = new Database(draft)
    try {
      // The file is synced once, before it is renamed, instead of up to four times per statement. `syncPath` does not
      // sync on Windows.
      if (process.platform !== 'win32') database.pragma('synchronous = OFF')
      database.pragma(`page_size = ${PAGE_BYTES}`)
      database.pragma('auto_vacuum = INCREMENTAL')
      database.pragma(`application_id = ${APPLICATION_ID}`)
      database.exec(`BEGIN; ${SCHEMA} COMMIT;`)
      database.pragma(`user_version = ${SCHEMA_VERSION}`)
      database.pragma('journal_mode = WAL')
    } finally {
      database.close()
    }
    syncPath(draft)
    renameSync(draft, files.data)
    syncPath(files.folder)
  } catch (error) {
    throw new EmbeddedEngineError(
      'STORE_UNWRITABLE',
      `cannot create the store: ${files.data}: ${messageOf(error)}`,
      files.data,
      {
        cause: error,
      },
    )
  }
}

/** Reads the table definitions and the list of channels. This also recovers commits that a crash left in the WAL. */
function checkReadable(files: StoreFiles): void {
  let database: Database.Database | undefined
  try {
    database = openReadConnection(files.data)
    loadChannels(database)
    // If this table is unreadable, the id of a deleted channel could be used again while its rows exist.
    database.prepare('SELECT channel FROM garbage').all()
  } catch (error) {
    if (/^SQLITE_(NOTADB|CORRUPT|ERROR)/.test(sqliteCode(error))) throw damaged(files.data, messageOf(error), error)
    throw new EmbeddedEngineError(
      'STORE_UNWRITABLE',
      `cannot open the store: ${files.data}: ${messageOf(error)}`,
      files.data,
      {
        cause: error,
      },
    )
  } finally {
    database?.close()
  }
}
