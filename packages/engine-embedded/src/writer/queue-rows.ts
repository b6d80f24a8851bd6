import type Database from 'better-sqlite3'

import type { QueueRow } from '../store/message-rows.ts'
import {
  addPlainValues,
  isPlain,
  KEY,
  PLAIN_PARAMETERS,
  PLAIN_VALUES,
  QUEUE_COLUMNS,
  QUEUE_PARAMETERS,
  queueValues,
} from '../store/message-rows.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { QueueGroups } from './queue-groups.ts'
import { touching } from './refusals.ts'

/** The number of rows in one `INSERT`. A row costs a quarter less than with one statement each. */
const ROWS = 8

/**
 * The rows of `queue_messages` that the operations of one transaction insert and delete, collected so that several
 * share a statement. Call {@link flush} before any read of them and before the commit.
 */
export class QueueRows {
  readonly #groups: QueueGroups
  readonly #insert
  readonly #insertPlain
  readonly #insertSeveral
  readonly #delete
  readonly #deleteGrouped
  readonly #sum
  readonly #deleteRange
  /** The values of plain rows, concatenated. */
  #values: (number | string | Uint8Array)[] = []
  #deletions = new Map<StoredChannel, number[]>()

  constructor(database: Database.Database, groups: QueueGroups) {
    this.#groups = groups
    const insert = (parameters: string, rows = 1): Database.Statement =>
      database.prepare(
        `INSERT INTO queue_messages (${QUEUE_COLUMNS}) VALUES ${Array(rows).fill(`(${parameters})`).join(', ')}`,
      )
    this.#insert = insert(QUEUE_PARAMETERS)
    this.#insertPlain = insert(PLAIN_PARAMETERS)
    this.#insertSeveral = insert(PLAIN_PARAMETERS, ROWS)
    this.#delete = database.prepare<[number, number], { size: number }>(
      `DELETE FROM queue_messages WHERE key = ${KEY} RETURNING size`,
    )
    this.#deleteGrouped = database.prepare<[number, number], { size: number; tags: string }>(
      `DELETE FROM queue_messages WHERE key = ${KEY} RETURNING size, tags`,
    )
    const range = `key BETWEEN ${KEY} AND ${KEY}`
    this.#sum = database.prepare<[number, number, number, number], { count: number; bytes: number | null }>(
      `SELECT count(*) AS count, sum(size) AS bytes FROM queue_messages WHERE ${range}`,
    )
    this.#deleteRange = database.prepare<[number, number, number, number]>(`DELETE FROM queue_messages WHERE ${range}`)
  }

  insert(channelId: number, sequence: number, row: QueueRow): void {
    if (this.#groups.has(channelId)) this.#groups.add(channelId, sequence, row.tags)
    if (!isPlain(row)) {
      this.#insert.run(channelId, sequence, ...queueValues(row))
      return
    }
    addPlainValues(this.#values, channelId, sequence, row)
    if (this.#values.length === ROWS * PLAIN_VALUES) {
      const values = this.#values
      this.#values = []
      this.#insertSeveral.run(...values)
    }
  }

  /** Deletes a row immediately and updates its channel's counters; returns false if there is none. */
  delete(channel: StoredChannel, sequence: number): boolean {
    const row = this.#groups.has(channel.id)
      ? touching(channel, () => this.#removeGrouped(channel.id, sequence))
      : this.#delete.get(channel.id, sequence)
    if (!row) return false
    channel.entries--
    channel.bytes -= row.size
    return true
  }

  #removeGrouped(id: number, sequence: number): { size: number } | undefined {
    const row = this.#deleteGrouped.get(id, sequence)
    if (row) this.#groups.remove(id, sequence, row.tags)
    return row
  }

  /** Deletes a row, if it exists, with the next {@link flush}. */
  deleteLater(channel: StoredChannel, sequence: number): void {
    const sequences = this.#deletions.get(channel)
    if (sequences) sequences.push(sequence)
    else this.#deletions.set(channel, [sequence])
  }

  flush(): void {
    const values = this.#values
    this.#values = []
    for (let at = 0; at < values.length; at += PLAIN_VALUES) {
      this.#insertPlain.run(...values.slice(at, at + PLAIN_VALUES))
    }
    if (this.#deletions.size === 0) return
    const deletions = this.#deletions
    this.#deletions = new Map()
    for (const [channel, sequences] of deletions) this.#deleteAll(channel, sequences)
  }

  /**
   * Deletes many rows. Receivers lease adjacent messages and acknowledge them together: one statement deletes such a
   * range.
   */
  #deleteAll(channel: StoredChannel, sequences: number[]): void {
    sequences.sort((a, b) => a - b)
    let first = sequences[0] ?? 0
    let last = first
    for (const sequence of sequences) {
      if (sequence > last + 1) {
        this.#deleteNeighbors(channel, first, last)
        first = sequence
      }
      last = sequence
    }
    this.#deleteNeighbors(channel, first, last)
  }

  #deleteNeighbors(channel: StoredChannel, first: number, last: number): void {
    if (first === last || this.#groups.has(channel.id)) {
      for (let sequence = first; sequence <= last; sequence++) this.delete(channel, sequence)
      return
    }
    const { id } = channel
    const sum = this.#sum.get(id, first, id, last)
    if (!sum || sum.count === 0) return
    this.#deleteRange.run(id, first, id, last)
    channel.entries -= sum.count
    channel.bytes -= sum.bytes ?? 0
  }

  /** Drops the collected rows after a rollback. */
  discard(): void {
    this.#values = []
    this.#deletions.clear()
  }
}
