import Database from 'better-sqlite3'

/** How long a checkpoint waits for a reader; our reads take milliseconds. */
const BUSY_TIMEOUT_MS = 2_000

/** The one connection that writes. Checkpoints are the writer's own ({@link Checkpointer}), so that their errors are seen. */
export function openWriteConnection(file: string): Database.Database {
  const database = new Database(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
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
