import Database from 'better-sqlite3'

/** How long a checkpoint waits for a reader; our reads take milliseconds. */
const BUSY_TIMEOUT_MS = 2_000

/**
 * The one connection that writes. Its commits are in the WAL and not synced, which the writer does ({@link WalFile}).
 * Checkpoints are the writer's own too ({@link Checkpointer}), so that their errors are seen.
 */
export function openWriteConnection(file: string): Database.Database {
  const database = new Database(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  database.pragma('journal_mode = WAL')
  // Not OFF: a checkpoint syncs the WAL before it copies, and a WAL that starts over has its new header synced first.
  database.pragma('synchronous = NORMAL')
  database.pragma('wal_autocheckpoint = 0')
  // Only the broker writes SQL; spilling a group's pages before its commit would write them twice.
  database.pragma('cache_spill = OFF')
  return database
}

/** The reader of the main thread. Every read is one statement run to its end: an open one would keep the WAL growing. */
export function openReadConnection(file: string): Database.Database {
  const database = new Database(file, { fileMustExist: true, readonly: true, timeout: BUSY_TIMEOUT_MS })
  database.pragma('query_only = ON')
  return database
}
