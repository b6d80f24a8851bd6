import type Database from 'better-sqlite3'

import type { QueueRow } from '../store/message-rows.ts'
import {
  isPlain,
  KEY,
  PLAIN_PARAMETERS,
  PLAIN_VALUES,
  QUEUE_COLUMNS,
  QUEUE_PARAMETERS,
  QUEUE_VALUES,
  queueValues,
} from '../store/message-rows.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { QueueGroups } from './queue-groups.ts'
import { touching } from './refusals.ts'
import { RowBatch } from './row-batch.ts'

/**
 * The rows of `queue_messages` that the operations of one transaction insert and delete, collected so that several
 * share a statement. Call {@link flush} before any read of them and before the commit.
 */
export class QueueRows {
  readonly #groups: QueueGroups
  readonly #rows: RowBatch
  readonly #plainRows: RowBatch
  readonly #delete
  readonly #deleteGrouped
  readonly #sum
  readonly #deleteRange
  #deletions = new Map<StoredChannel, number[]>()

  constructor(database: Database.Database, groups: QueueGroups) {
    this.#groups = groups
    const table = { table: 'queue_messages', columns: QUEUE_COLUMNS }
    this.#rows = new RowBatch(database, { ...table, parameters: QUEUE_PARAMETERS, width: QUEUE_VALUES })
    this.#plainRows = new RowBatch(database, { ...table, parameters: PLAIN_PARAMETERS, width: PLAIN_VALUES })
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
    if (isPlain(row)) {
      const { id, clientId, timestamp, size, tags, body } = row
      this.#plainRows.values.push(channelId, sequence, id, clientId, timestamp, size, tags, body)
      this.#plainRows.added()
    } else {
      this.#rows.values.push(channelId, sequence, ...queueValues(row))
      this.#rows.added()
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
    this.#plainRows.flush()
    this.#rows.flush()
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
    this.#plainRows.discard()
    this.#rows.discard()
    this.#deletions.clear()
  }
}
