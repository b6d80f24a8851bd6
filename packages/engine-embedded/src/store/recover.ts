import type { StoredType } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

import { EmbeddedEngineError } from '../errors.ts'
import { openSource } from './copy-source.ts'
import { makeFolder, storeFiles, syncPath } from './files.ts'
import type { MessageTable } from './message-rows.ts'
import { CHANNEL, KEY, MESSAGE_TABLES, parseTags, SEQUENCE } from './message-rows.ts'
import { createDataFile, StoreLock } from './prepare-store.ts'
import type { SalvagedRow } from './recovered-channels.ts'
import { channelRows, RecoveredChannels, salvage } from './recovered-channels.ts'
import { isDamage, isFull, isHopeless, sqliteCode } from './sqlite.ts'

/** The result of a recovery. */
export interface Recovery {
  /** The absolute path of the new store's data file. */
  readonly file: string
  readonly bytes: number
  readonly channels: number
  readonly messages: number
  /** One line for each channel with missing rows. */
  readonly leftOut: readonly string[]
}

const TABLES: readonly { readonly name: MessageTable; readonly type: StoredType }[] = [
  { name: 'queue_messages', type: 'queues' },
  { name: 'delayed_messages', type: 'queues' },
  { name: 'log_entries', type: 'events_store' },
]

/**
 * Copies the readable rows of a damaged store to a new store in another folder. The damaged store must not be open, and
 * is not changed. Messages that were leased are deliverable in the copy. Deduplication ids of the last two minutes are
 * not copied, nor are the groups of messages: the settings of the queues build them again.
 * @throws EmbeddedEngineError STORE_LOCKED, STORE_DAMAGED if no row can be read, STORE_VERSION, STORE_UNWRITABLE,
 * RECOVERY_UNWRITABLE; then no copy remains
 */
export function recoverStore(from: string, to: string): Recovery {
  const source = storeFiles(resolve(from))
  const target = storeFiles(resolve(to))
  const database = openSource(source.data, true)
  try {
    const lock = new StoreLock(source.lock)
    try {
      return writeCopy(database, target.folder, target.data)
    } finally {
      lock.release()
    }
  } finally {
    database.close()
  }
}

/** Writes the copy under another name until it is complete. */
function writeCopy(source: Database.Database, folder: string, file: string): Recovery {
  if (existsSync(file)) throw unwritable(file, 'it exists already and is not overwritten; choose another folder')
  const draft = `${file}.part`
  try {
    makeFolder(folder)
    rmSync(draft, { force: true })
    createDataFile({ folder, data: draft })
    const copied = fill(source, draft)
    syncPath(draft)
    const { size: bytes } = statSync(draft)
    renameSync(draft, file)
    syncPath(folder)
    return { file, bytes, ...copied }
  } catch (error) {
    for (const leftover of [draft, `${draft}-wal`, `${draft}-shm`]) rmSync(leftover, { force: true })
    if (error instanceof EmbeddedEngineError) throw error
    throw unwritable(file, isFull(error) ? 'the disk is full' : messageOf(error), error)
  }
}

function fill(source: Database.Database, draft: string): Pick<Recovery, 'channels' | 'messages' | 'leftOut'> {
  const target = new Database(draft, { fileMustExist: true })
  try {
    // The file is deleted unless it is complete and synced.
    target.pragma('journal_mode = MEMORY')
    target.pragma('synchronous = OFF')
    return target.transaction(() => {
      const channels = new RecoveredChannels(source)
      for (const table of TABLES) copyTable(source, target, table, channels)
      target.exec(`
        INSERT INTO log_keys (channel, log_key, sequence)
        SELECT ${CHANNEL}, log_key, max(${SEQUENCE}) FROM log_entries WHERE log_key IS NOT NULL GROUP BY 1, 2`)
      const positions = copyPositions(source, target, channels)
      const { leftOut, ...counts } = channels.write(target)
      return { ...counts, leftOut: [...leftOut, ...positions] }
    })()
  } finally {
    if (target.open) {
      target.pragma('journal_mode = WAL')
      target.close()
    }
  }
}

function copyTable(
  source: Database.Database,
  target: Database.Database,
  { name, type }: (typeof TABLES)[number],
  channels: RecoveredChannels,
): void {
  const declared: readonly [column: string, declaration: string][] = Object.entries(MESSAGE_TABLES[name])
  const columns = declared.map(([column]) => column)
  const reader = channelRows(source, name, columns)
  const insert = target.prepare(
    `INSERT OR IGNORE INTO ${name} (key, ${columns.join(', ')}) VALUES (${KEY}, ${columns.map(() => '?').join(', ')})`,
  )
  for (const channel of channels.of(source, name, type)) {
    salvage(reader(channel.id), 1, channel.highest, (row) => {
      if (!isReadable(row, declared)) return
      const [sequence, ...values] = row
      if (insert.run(channel.id, sequence, ...values).changes === 0) return
      channels.count(channel, name === 'delayed_messages', sequence, Number(row[3]), Number(row[4]))
    })
  }
}

/** Returns whether the values of a row are valid: a damaged page may be readable and contain garbage. */
function isReadable(
  [sequence, ...values]: SalvagedRow,
  declared: readonly (readonly [column: string, declaration: string])[],
): boolean {
  if (sequence < 1) return false
  return declared.every(([column, declaration], i) => {
    const value = values[i]
    if (declaration.startsWith('BLOB')) return value instanceof Uint8Array
    if (declaration.startsWith('INTEGER')) return Number.isSafeInteger(value)
    if (value === null) return declaration === 'TEXT'
    return typeof value === 'string' && (column !== 'tags' || areTags(value))
  })
}

function areTags(json: string): boolean {
  try {
    return typeof parseTags(json) === 'object'
  } catch {
    return false
  }
}

function unwritable(file: string, reason: string, cause?: unknown): EmbeddedEngineError {
  const problem = `cannot write the recovered store: ${file}: ${reason}`
  return new EmbeddedEngineError('RECOVERY_UNWRITABLE', problem, file, { cause })
}

interface PositionRow {
  readonly channel: unknown
  readonly name: unknown
  readonly position: unknown
  readonly usedAt: unknown
}

/**
 * Copies the readable positions of durable groups; returns a report if some could not be read. Such a group starts
 * again where its next subscriber asks. Call it after the messages were copied.
 */
function copyPositions(source: Database.Database, target: Database.Database, channels: RecoveredChannels): string[] {
  const insert = target.prepare(
    'INSERT OR IGNORE INTO group_positions (channel, name, position, used_at) VALUES (?, ?, ?, ?)',
  )
  try {
    // Stores from before this table do not have it.
    const table = source.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'group_positions'")
    if (!table.get()) return []
    const rows = source.prepare<[], PositionRow>(
      'SELECT channel, name, position, used_at AS usedAt FROM group_positions',
    )
    for (const { channel, name, position, usedAt } of rows.iterate()) {
      if (!isWhole(channel) || !isWhole(position) || !isWhole(usedAt) || typeof name !== 'string') continue
      if (channels.hasEventsStore(channel)) insert.run(channel, name, position, usedAt)
    }
    return []
  } catch (error) {
    if (!isDamage(error) && !isHopeless(sqliteCode(error))) throw error
    return ['positions of durable groups: some could not be read']
  }
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
