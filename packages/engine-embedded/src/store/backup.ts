import { messageOf } from '@signalbox/broker-core/internal'
import type Database from 'better-sqlite3'
import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { EmbeddedEngineError } from '../errors.ts'
import { openSource } from './copy-source.ts'
import { FILE_MODE, makeFolder, storeFiles, syncPath } from './files.ts'
import { damaged, StoreLock } from './prepare-store.ts'
import { isHopeless, sqliteCode } from './sqlite.ts'

/** The result of a backup. */
interface Backup {
  /** The absolute path of the copy. */
  readonly file: string
  readonly bytes: number
}

/**
 * Copies the store in a folder to a file, also while a server writes to it. The copy is a snapshot with every write
 * that was acknowledged before the call; as `signalbox.db` in an empty folder it is a store. Blocks the thread until
 * the copy is on disk; until then the server's WAL cannot start over.
 * @throws EmbeddedEngineError STORE_DAMAGED, STORE_VERSION, STORE_UNWRITABLE, BACKUP_UNWRITABLE; then no copy remains
 */
export function backupStore(folder: string, target: string): Backup {
  const { data } = storeFiles(folder)
  const file = resolve(target)
  const database = openSource(data)
  try {
    reserve(file)
    try {
      return copy(database, data, file)
    } catch (error) {
      rmSync(file, { force: true })
      throw error
    }
  } finally {
    database.close()
  }
}

/**
 * Copies a backup into an empty folder, where it is a store. First checks every page of the backup.
 * @throws EmbeddedEngineError STORE_LOCKED if a server uses the folder, STORE_DAMAGED, STORE_VERSION,
 * STORE_UNWRITABLE if the backup cannot be read, RESTORE_UNWRITABLE; then the folder has no store
 */
export function restoreStore(backup: string, folder: string): Backup {
  const source = resolve(backup)
  const target = storeFiles(resolve(folder))
  const database = openSource(source)
  try {
    makeTarget(target.folder)
    const lock = new StoreLock(target.lock)
    try {
      const others = readdirSync(target.folder).filter((name) => !LOCK_FILES.test(name))
      if (others.length > 0) {
        const reason = `it contains ${others[0]}; move all files away, or choose another folder`
        throw notRestored(target.folder, reason)
      }
      checkPages(database, source)
      return copy(database, source, target.data)
    } catch (error) {
      if (!(error instanceof EmbeddedEngineError) || error.code !== 'BACKUP_UNWRITABLE') throw error
      throw notRestored(target.folder, messageOf(error.cause), error.cause)
    } finally {
      lock.release()
    }
  } finally {
    database.close()
  }
}

const LOCK_FILES = /^signalbox\.lock/

function makeTarget(folder: string): void {
  try {
    makeFolder(folder)
  } catch (error) {
    throw notRestored(folder, messageOf(error), error)
  }
}

function checkPages(database: Database.Database, file: string): void {
  let result: unknown
  try {
    result = database.pragma('integrity_check(1)', { simple: true })
  } catch (error) {
    result = messageOf(error)
  }
  if (result !== 'ok') throw damaged(file, String(result).replaceAll('\n', ' '))
}

function notRestored(folder: string, reason: string, cause?: unknown): EmbeddedEngineError {
  const problem = `cannot restore the backup: ${folder}: ${reason}`
  return new EmbeddedEngineError('RESTORE_UNWRITABLE', problem, folder, { cause })
}

/** Creates the file exclusively, so that the backup never overwrites a file. */
function reserve(file: string): void {
  try {
    writeFileSync(file, '', { flag: 'wx', mode: FILE_MODE })
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    const reason = exists ? 'it exists already and is not overwritten; choose another file' : messageOf(error)
    throw unwritable(file, reason, error)
  }
}

/**
 * Writes under another name until the copy is complete, so that a crash leaves no incomplete copy under the final name.
 */
function copy(database: Database.Database, data: string, file: string): Backup {
  const draft = `${file}.part`
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, '', { flag: 'wx', mode: FILE_MODE })
    database.prepare('VACUUM INTO ?').run(draft)
    syncPath(draft)
    const { size: bytes } = statSync(draft)
    renameSync(draft, file)
    syncPath(dirname(file))
    return { file, bytes }
  } catch (error) {
    rmSync(draft, { force: true })
    // SQLite finds a damaged page only when it reads the page.
    if (isHopeless(sqliteCode(error))) throw damaged(data, messageOf(error), error)
    throw unwritable(file, messageOf(error), error)
  }
}

function unwritable(file: string, reason: string, cause: unknown): EmbeddedEngineError {
  return new EmbeddedEngineError('BACKUP_UNWRITABLE', `cannot write the backup: ${file}: ${reason}`, file, { cause })
}
