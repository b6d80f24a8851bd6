import Database from 'better-sqlite3'

/** The time that a checkpoint waits for a reader, in ms; reads take milliseconds. */
const BUSY_TIMEOUT_MS = 2_000

/**
 * Opens the only connection that writes. It writes commits to the WAL without a sync: the writer syncs ({@link
 * WalFile}), and runs checkpoints ({@link Checkpointer}), so that it sees their errors.
 */
export function openWriteConnection(file: string): Database.Database {
  const database = new Database(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  database.pragma('journal_mode = WAL')
  // Not OFF: with NORMAL a checkpoint syncs the WAL before it copies, and syncs the new header of a WAL that starts
  // over.
  database.pragma('synchronous = NORMAL')
  database.pragma('wal_autocheckpoint = 0')
  // Spilling a group's pages before its commit would write them twice.
  database.pragma('cache_spill = OFF')
  return database
}

/**
 * Opens the reader of the main thread. Each read runs one statement to its end: an open statement would make the WAL
 * grow.
 */
export function openReadConnection(file: string): Database.Database {
  const database = new Database(file, { fileMustExist: true, readonly: true, timeout: BUSY_TIMEOUT_MS })
  database.pragma('query_only = ON')
  return database
}

/** Returns SQLite's extended result code of an error, such as `SQLITE_FULL`; empty for other errors. */
export function sqliteCode(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return ''
  const { code } = error
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : ''
}

/** Returns whether the disk or a quota is full. Nothing was written, and the connection still works. */
export function isFull(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_FULL'
}

/** A row has values that were never written. */
export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError'
}

/**
 * Returns whether a page or a row cannot be read. The transaction that read it is rolled back; the connection and all
 * other pages still work.
 */
export function isDamage(error: unknown): boolean {
  return (
    error instanceof DamagedRowError ||
    /^SQLITE_(CORRUPT|IOERR_(READ|SHORT_READ|DATA|CORRUPTFS)$)/.test(sqliteCode(error))
  )
}

/** Returns whether the whole file is not a store, or not readable. Opening it again does not help. */
export function isHopeless(code: string): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(code)
}

/**
 * Returns whether the error leaves it unknown which data is on disk and which only in the page cache. The connection
 * must be closed and the store read again. In particular, never repeat a failed sync: the kernel drops the pages it
 * could not write, and the second sync would succeed without them.
 */
export function isFatal(error: unknown): boolean {
  return /^SQLITE_(IOERR|NOTADB|CANTOPEN|READONLY|PROTOCOL|NOMEM|INTERNAL)/.test(sqliteCode(error)) && !isDamage(error)
}
