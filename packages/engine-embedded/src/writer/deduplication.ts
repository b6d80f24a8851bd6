import { DEDUPLICATION_MS } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

interface FirstSend {
  readonly sequence: number
  readonly id: string
  readonly timestamp: number
}

/** Stores the sends that had a deduplication id. */
export class Deduplication {
  readonly #select
  readonly #upsert
  readonly #deleteOld

  constructor(database: Database.Database) {
    this.#select = database.prepare<[number, string], FirstSend>(
      'SELECT sequence, id, timestamp FROM deduplication WHERE channel = ? AND deduplication_id = ?',
    )
    this.#upsert = database.prepare<[number, string, number, string, number]>(
      'INSERT OR REPLACE INTO deduplication (channel, deduplication_id, sequence, id, timestamp) VALUES (?, ?, ?, ?, ?)',
    )
    // Bounded on both sides: entries from before the clock was set back are deleted too.
    this.#deleteOld = database.prepare<[number, number, number]>(`
      DELETE FROM deduplication WHERE (channel, deduplication_id) IN (
        SELECT channel, deduplication_id FROM deduplication WHERE timestamp <= ? OR timestamp >= ? LIMIT ?)`)
  }

  /** Returns the first send with this id, if it was less than two minutes ago. Works also if the clock was set back. */
  find(channel: number, deduplicationId: string, now: number): FirstSend | undefined {
    const first = this.#select.get(channel, deduplicationId)
    return first && Math.abs(now - first.timestamp) < DEDUPLICATION_MS ? first : undefined
  }

  remember(channel: number, deduplicationId: string, send: FirstSend): void {
    this.#upsert.run(channel, deduplicationId, send.sequence, send.id, send.timestamp)
  }

  /** Deletes old ids, at most `limit`; returns the number of deleted ids. */
  forgetOld(now: number, limit: number): number {
    return this.#deleteOld.run(now - DEDUPLICATION_MS, now + DEDUPLICATION_MS, limit).changes
  }
}
