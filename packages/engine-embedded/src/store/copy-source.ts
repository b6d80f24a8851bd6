import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'

import { EmbeddedEngineError } from '../errors.ts'
import { damaged } from './prepare-store.ts'
import { APPLICATION_ID, GROUPS_VERSION, isReadableVersion, SCHEMA_VERSION } from './schema.ts'
import { isHopeless, sqliteCode } from './sqlite.ts'

/**
 * Opens the data file of a store to copy from it. Not in `backup.ts`: the declarations of that public module must not need
 * the types of better-sqlite3. Only SQLite checks the file: closing another descriptor of the data
 * file would release the locks of this process.
 * @param lenient Reads a truncated file, or one with damaged table definitions, as far as possible
 * @throws EmbeddedEngineError STORE_DAMAGED, STORE_VERSION, STORE_UNWRITABLE
 */
export function openSource(data: string, lenient = false): Database.Database {
  let database: Database.Database | undefined
  try {
    // Not `query_only`, which also forbids VACUUM INTO.
    database = new Database(data, { fileMustExist: true, readonly: true })
    if (lenient) database.unsafeMode().pragma('writable_schema = ON')
    const application = database.pragma('application_id', { simple: true })
    if (application !== APPLICATION_ID) throw damaged(data, 'it is a database, but not a Signalbox store')
    const version = database.pragma('user_version', { simple: true })
    if (!isReadableVersion(version)) {
      throw new EmbeddedEngineError(
        'STORE_VERSION',
        `the store was written by another version of Signalbox: ${data} has format ${String(version)}, this program supports ${SCHEMA_VERSION} to ${GROUPS_VERSION}; use that version`,
        data,
      )
    }
    return database
  } catch (error) {
    database?.close()
    throw sourceError(data, error)
  }
}

/** Converts an error from reading a store. */
function sourceError(data: string, error: unknown): unknown {
  if (error instanceof EmbeddedEngineError) return error
  if (isHopeless(sqliteCode(error))) return damaged(data, messageOf(error), error)
  const problem = `cannot read the store: ${data}: ${messageOf(error)}; name the folder of a store`
  return new EmbeddedEngineError('STORE_UNWRITABLE', problem, data, { cause: error })
}
