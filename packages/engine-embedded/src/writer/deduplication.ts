import type Database from 'better-sqlite3'

/** How long a send with a deduplication id is remembered (C5). */
const DEDUPLICATION_MS = 2 * 60_000

export interface FirstSend {
  readonly sequence: number
  readonly id: string
  readonly timestamp: number
}

/** Remembers, on disk, the sends that carried a deduplication id. */
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
    // Bounded on both sides, so that entries from before a clock was set back go too.
    this.#deleteOld = database.prepare<[number, number, number]>(`
      DELETE FROM deduplication WHERE (channel, deduplication_id) IN (
        SELECT channel, deduplication_id FROM deduplication WHERE timestamp <= ? OR timestamp >= ? LIMIT ?)`)
  }

  /** The first send with this id, if it was less than two minutes ago, by a clock that may have been set back. */
  find(channel: number, deduplicationId: string, now: number): FirstSend | undefined {
    const first = this.#select.get(channel, deduplicationId)
    return first && Math.abs(now - first.timestamp) < DEDUPLICATION_MS ? first : undefined
  }

  remember(channel: number, deduplicationId: string, send: FirstSend): void {
    this.#upsert.run(channel, deduplicationId, send.sequence, send.id, send.timestamp)
  }

  /** Returns how many were forgotten, `limit` at most. */
  forgetOld(now: number, limit: number): number {
    return this.#deleteOld.run(now - DEDUPLICATION_MS, now + DEDUPLICATION_MS, limit).changes
  }
}
