import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { Buffer } from 'node:buffer'
import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync } from 'node:fs'

import { EmbeddedEngineError } from '../errors.ts'
import { Reserve } from '../writer/space.ts'
import type { StoreFiles } from './files.ts'
import { makeFolder, protectFiles, syncPath, touchFile } from './files.ts'
import { APPLICATION_ID, GROUPS_VERSION, isReadableVersion, PAGE_BYTES, SCHEMA, SCHEMA_VERSION } from './schema.ts'
import { openReadConnection, sqliteCode } from './sqlite.ts'
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
    if (database.pragma('user_version', { simple: true }) === GROUPS_VERSION) {
      database.prepare('SELECT * FROM grouped_queues').all()
    }
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

const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
const WAL_HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/**
 * Checks the first 100 bytes and the length of the data file without opening it as a database, so that a truncated or
 * foreign file remains unchanged. A full check would read every page, which takes minutes for a large store. The WAL
 * may have data after its last complete commit: that is normal after a crash, and SQLite handles it.
 *
 * Must run before SQLite opens the file in this process: closing a second descriptor of a file releases its locks.
 * @returns false if there is no store yet
 * @throws EmbeddedEngineError STORE_DAMAGED, STORE_VERSION, STORE_UNWRITABLE
 */
function checkDataFile(file: string, walFile: string): boolean {
  const data = openToRead(file)
  const wal = openToRead(walFile)
  try {
    if (data === undefined) {
      if (wal !== undefined && fstatSync(wal).size > 0) throw damaged(file, `it is missing, but ${walFile} exists`)
      return false
    }
    const { pageSize, pages } = checkHeader(file, data)
    const whole = Math.floor(fstatSync(data).size / pageSize)
    // A crash while the WAL is copied back leaves a file that is shorter than its new header says. The WAL has the
    // missing pages.
    if (whole < pages && (wal === undefined || pagesInWal(wal, whole + 1, pages) < pages - whole)) {
      throw damaged(file, `it is truncated: it has ${whole} pages of ${pageSize} bytes, and its header says ${pages}`)
    }
    return true
  } catch (error) {
    if (error instanceof EmbeddedEngineError) throw error
    throw unreadable(file, error)
  } finally {
    if (data !== undefined) closeSync(data)
    if (wal !== undefined) closeSync(wal)
  }
}

function checkHeader(file: string, descriptor: number): { pageSize: number; pages: number } {
  const header = Buffer.alloc(HEADER_BYTES)
  const read = readSync(descriptor, header, 0, HEADER_BYTES, 0)
  if (read < HEADER_BYTES || header.toString('latin1', 0, 16) !== MAGIC) {
    throw damaged(file, 'it does not begin like a Signalbox store')
  }
  if (header.readUInt32BE(68) !== APPLICATION_ID) throw damaged(file, 'it is a database, but not a Signalbox store')
  const version = header.readUInt32BE(60)
  if (!isReadableVersion(version)) {
    throw new EmbeddedEngineError(
      'STORE_VERSION',
      `the store was written by another version of Signalbox: ${file} has format ${version}, this program supports ${SCHEMA_VERSION} to ${GROUPS_VERSION}; upgrade, or choose another folder`,
      file,
    )
  }
  const stated = header.readUInt16BE(16)
  return { pageSize: stated === 1 ? 65_536 : stated, pages: header.readUInt32BE(28) }
}

/** Returns the number of different pages of a range in the frames of a WAL. */
function pagesInWal(descriptor: number, first: number, last: number): number {
  const header = Buffer.alloc(WAL_HEADER_BYTES)
  if (readSync(descriptor, header, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES) return 0
  const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(8)
  const salt = header.readBigUInt64BE(16)
  const found = new Set<number>()
  const frame = Buffer.alloc(FRAME_HEADER_BYTES)
  for (let at = WAL_HEADER_BYTES; ; at += frameBytes) {
    const read = readSync(descriptor, frame, 0, FRAME_HEADER_BYTES, at)
    // Frames of an earlier round of the WAL follow the current ones. They have a different salt.
    if (read < FRAME_HEADER_BYTES || frame.readBigUInt64BE(8) !== salt) return found.size
    const page = frame.readUInt32BE(0)
    if (page >= first && page <= last) found.add(page)
  }
}

function openToRead(file: string): number | undefined {
  try {
    return openSync(file, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw unreadable(file, error)
  }
}

function unreadable(file: string, error: unknown): EmbeddedEngineError {
  return new EmbeddedEngineError('STORE_UNWRITABLE', `cannot read the store: ${file}: ${messageOf(error)}`, file, {
    cause: error,
  })
}

export function damaged(file: string, reason: string, cause?: unknown): EmbeddedEngineError {
  return new EmbeddedEngineError(
    'STORE_DAMAGED',
    `the store is damaged: ${file}: ${reason}; nothing was changed. Run "signalbox recover" to copy the readable messages, restore a backup, or choose another folder`,
    file,
    { cause },
  )
}

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
      throw lockError(file, error)
    }
  }

  release(): void {
    if (this.#database.open) this.#database.close()
  }
}

function lockError(file: string, error: unknown): EmbeddedEngineError {
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
