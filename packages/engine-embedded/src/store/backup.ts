import { messageOf } from '@signalbox/broker-core/internal'
import type Database from 'better-sqlite3'
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { EmbeddedEngineError } from '../errors.ts'
import { damaged } from './check-file.ts'
import { FILE_MODE, storeFiles, syncPath } from './files.ts'
import { openSource } from './source.ts'
import { isHopeless, sqliteCode } from './sqlite-code.ts'

/** What a backup came to. */
export interface Backup {
  /** The absolute path of the copy. */
  readonly file: string
  readonly bytes: number
}

/**
 * Copies the store in a folder to a file, while a server writes to it or not. The copy is the store at one moment: it has
 * everything that was acknowledged before the call, and as `signalbox.db` in an empty folder it is a store. Blocks the
 * thread until the copy is on disk; meanwhile the server's WAL cannot start over.
 * @throws EmbeddedEngineError STORE_DAMAGED, STORE_VERSION, STORE_UNWRITABLE, BACKUP_UNWRITABLE; then there is no copy
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

/** Takes the name, so that nothing that is there, or comes to be there meanwhile, is overwritten. */
function reserve(file: string): void {
  try {
    writeFileSync(file, '', { flag: 'wx', mode: FILE_MODE })
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    const reason = exists ? 'it is there already, and is not overwritten; choose another file' : messageOf(error)
    throw unwritable(file, reason, error)
  }
}

/** Under another name until it is whole: what a crash leaves is no half copy that looks like one. */
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
    // A damaged page is met only when it is read.
    if (isHopeless(sqliteCode(error))) throw damaged(data, messageOf(error), error)
    throw unwritable(file, messageOf(error), error)
  }
}

function unwritable(file: string, reason: string, cause: unknown): EmbeddedEngineError {
  return new EmbeddedEngineError('BACKUP_UNWRITABLE', `cannot write the backup: ${file}: ${reason}`, file, { cause })
}
