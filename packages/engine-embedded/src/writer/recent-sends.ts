import { DEDUPLICATION_MS, KEPT_UNTIL, UNTIL_DIGITS } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { RECENT_SENDS_TABLE } from '../store/schema.ts'
import { RowBatch } from './row-batch.ts'
import { randomHash, RowIndex } from './row-index.ts'

/** The first send with an id. */
export interface FirstSend {
  readonly sequence: number
  readonly id: string
  readonly timestamp: number
}

interface RecentSend extends FirstSend {
  readonly channel: number
  readonly deduplicationId: string
}

/** The condition that an id names a time until which it is kept, and that this time is to come. The parameter is now. */
export const IS_KEPT = `(deduplication_id GLOB '${KEPT_UNTIL}*'
  AND CAST(substr(deduplication_id, ${KEPT_UNTIL.length + 1}, ${UNTIL_DIGITS}) AS INTEGER) > ?)`

const COLUMNS = 'key, channel, deduplication_id, sequence, id, timestamp'
/** The time that the rows of one mark cover, in ms. */
const MARK_MS = 1_000
/** The number of rows that are read together when the store is opened. */
const LOAD_STEP = 4_096

/** Rows from `row` on, up to the next mark, that were sent within {@link MARK_MS} of `timestamp`. */
interface Mark {
  readonly row: number
  readonly timestamp: number
}

/**
 * The sends of the last two minutes that had a deduplication id, as a log: rows are added at its end and deleted from
 * its begin. An index in memory finds them, so that a send changes one page of the disk, the last one. Ids that are
 * kept longer move to the table `deduplication`.
 */
export class RecentSends {
  readonly #database: Database.Database
  readonly #hash: (channel: number, id: string) => number
  readonly #index = new RowIndex()
  readonly #hasTable
  #statements: ReturnType<typeof prepare> | undefined
  /** The rows that this transaction has added and not written yet. Their last one is the row before {@link #next}. */
  #added: RecentSend[] = []
  /** The next row. Rows of a transaction that was rolled back are not used again: the index may have them. */
  #next = 1
  /** The rows below it are deleted if the last transaction was committed. */
  #deletedBelow = 1
  #marks: Mark[] = []
  /** The last row with an id that names a time. */
  #lastKept = 0

  constructor(database: Database.Database, hash = randomHash()) {
    this.#database = database
    this.#hash = hash
    this.#hasTable = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'recent_sends'")
  }

  /** The bytes of the index. */
  get indexBytes(): number {
    return this.#index.bytes
  }

  /** Builds the index from the rows; returns the highest id of their channels. */
  load(): number {
    const statements = this.#existing()
    if (!statements) return 0
    this.#next = (statements.last.get()?.key ?? 0) + 1
    let highest = 0
    this.#index.deleteBelow(statements.first.get()?.key ?? this.#next, 0)
    for (let after = 0; ;) {
      const rows = statements.after.all(after, LOAD_STEP)
      for (const [row, channel, id, timestamp] of rows) {
        this.#note(row, channel, id, timestamp)
        if (channel > highest) highest = channel
        after = row
      }
      if (rows.length < LOAD_STEP) break
    }
    this.#deletedBelow = this.#index.first
    return highest
  }

  find(channel: number, deduplicationId: string): FirstSend | undefined {
    const row = this.#index.find(this.#hash(channel, deduplicationId), this.#isSame(channel, deduplicationId))
    return row === 0 ? undefined : this.#read(row)
  }

  #isSame(channel: number, deduplicationId: string): (row: number) => boolean {
    return (row) => {
      const send = this.#read(row)
      return send?.deduplicationId === deduplicationId && send.channel === channel
    }
  }

  #read(row: number): RecentSend | undefined {
    const added = row - this.#next + this.#added.length
    return added >= 0 ? this.#added[added] : this.#existing()?.row.get(row)
  }

  add(channel: number, deduplicationId: string, { sequence, id, timestamp }: FirstSend): void {
    const { batch } = this.#made()
    const row = this.#next
    this.#note(row, channel, deduplicationId, timestamp)
    this.#next++
    this.#added.push({ channel, deduplicationId, sequence, id, timestamp })
    batch.values.push(row, channel, deduplicationId, sequence, id, timestamp)
    if (batch.added()) this.#added = []
  }

  #note(row: number, channel: number, id: string, timestamp: number): void {
    this.#index.add(this.#hash(channel, id), row, this.#isSame(channel, id))
    const mark = this.#marks.at(-1)
    if (!mark || Math.abs(timestamp - mark.timestamp) >= MARK_MS) this.#marks.push({ row, timestamp })
    if (id.startsWith(KEPT_UNTIL)) this.#lastKept = row
  }

  /**
   * Creates the table in a store from before it, within the running transaction. Not when the store is opened: a store
   * on a full disk must open.
   */
  #made(): ReturnType<typeof prepare> {
    if (!this.#statements && !this.#hasTable.get()) this.#database.exec(RECENT_SENDS_TABLE)
    return (this.#statements ??= prepare(this.#database))
  }

  /** Returns the statements; undefined if the store has no such table. */
  #existing(): ReturnType<typeof prepare> | undefined {
    if (!this.#statements && this.#hasTable.get()) this.#statements = prepare(this.#database)
    return this.#statements
  }

  /** Writes the collected rows. Call it before the commit. */
  flush(): void {
    if (this.#added.length === 0) return
    this.#added = []
    this.#statements?.batch.flush()
  }

  /** Drops the collected rows, and the statements: a rollback may remove the table too. */
  discard(): void {
    this.#added = []
    this.#statements = undefined
    this.#deletedBelow = this.#index.first
  }

  /**
   * Deletes sends from more than two minutes ago, at most `limit`; returns `true` if there are more. If the clock was
   * set back, rows from after now stay until two minutes lie between, too.
   * @param longer The channels with a longer window, as JSON; their ids move to the table `deduplication`
   */
  deleteOld(now: number, limit: number, longer: string): boolean {
    const first = this.#deletedBelow
    if (first > this.#index.first) this.#index.deleteBelow(first, this.#next - first)
    const isOver = ({ timestamp }: Mark): boolean => Math.abs(now - timestamp) >= DEDUPLICATION_MS + MARK_MS
    while (this.#marks.length > 1 && (this.#marks[1]?.row ?? 0) <= first) this.#marks.shift()
    const end = this.#marks.find((mark) => !isOver(mark))?.row ?? this.#next
    const below = Math.min(end, first + limit)
    const statements = below > first ? this.#existing() : undefined
    if (!statements) return false
    const { move, deleteBelow } = statements
    if (longer !== '[]' || this.#lastKept >= first) move.run(below, longer, now)
    deleteBelow.run(below)
    this.#deletedBelow = below
    return below < end
  }
}

function prepare(database: Database.Database) {
  return {
    batch: new RowBatch(database, {
      table: 'recent_sends',
      columns: COLUMNS,
      parameters: '?, ?, ?, ?, ?, ?',
      width: 6,
    }),
    row: database.prepare<[number], RecentSend>(
      'SELECT channel, deduplication_id AS deduplicationId, sequence, id, timestamp FROM recent_sends WHERE key = ?',
    ),
    first: database.prepare<[], { key: number | null }>('SELECT min(key) AS key FROM recent_sends'),
    last: database.prepare<[], { key: number | null }>('SELECT max(key) AS key FROM recent_sends'),
    after: database
      .prepare<[number, number], [row: number, channel: number, deduplicationId: string, timestamp: number]>(
        'SELECT key, channel, deduplication_id, timestamp FROM recent_sends WHERE key > ? ORDER BY key LIMIT ?',
      )
      .raw(),
    // Not the ids of deleted channels: others would get them with the channel's id.
    move: database.prepare<[number, string, number]>(`
      INSERT OR REPLACE INTO deduplication (channel, deduplication_id, sequence, id, timestamp)
      SELECT channel, deduplication_id, sequence, id, timestamp FROM recent_sends
      WHERE key < ? AND channel IN (SELECT id FROM channels)
        AND (channel IN (SELECT value FROM json_each(?)) OR ${IS_KEPT}) ORDER BY key`),
    deleteBelow: database.prepare<[number]>('DELETE FROM recent_sends WHERE key < ?'),
  }
}
