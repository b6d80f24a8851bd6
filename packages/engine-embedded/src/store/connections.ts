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
