import type { SettingsTable } from '@signalbox/broker-core/engine'
import { DEDUPLICATION_MS, deduplicationMsOf, KEPT_UNTIL, keptUntil, UNTIL_DIGITS } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import type { StoredChannel } from '../store/stored-channel.ts'

interface FirstSend {
  readonly sequence: number
  readonly id: string
  readonly timestamp: number
}

/** The condition that an id names a time until which it is kept, and that this time is to come. The parameter is now. */
const IS_KEPT = `(deduplication_id GLOB '${KEPT_UNTIL}*'
  AND CAST(substr(deduplication_id, ${KEPT_UNTIL.length + 1}, ${UNTIL_DIGITS}) AS INTEGER) > ?)`

/** Stores the sends that had a deduplication id. */
export class Deduplication {
  readonly #settings: SettingsTable
  readonly #select
  readonly #upsert
  readonly #deleteOld
  readonly #deleteOthers
  readonly #stepEnd
  /** The channels with longer windows at the last deletion, as JSON. */
  #longer = ''
  /** The time up to which all ids of other channels were deleted: the others are not searched again. */
  #deletedTo = 0

  constructor(database: Database.Database, settings: SettingsTable) {
    this.#settings = settings
    this.#select = database.prepare<[number, string], FirstSend>(
      'SELECT sequence, id, timestamp FROM deduplication WHERE channel = ? AND deduplication_id = ?',
    )
    this.#upsert = database.prepare<[number, string, number, string, number]>(
      'INSERT OR REPLACE INTO deduplication (channel, deduplication_id, sequence, id, timestamp) VALUES (?, ?, ?, ?, ?)',
    )
    // Bounded on both sides: entries from before the clock was set back are deleted too.
    this.#deleteOld = database.prepare<[number, number, number, number]>(`
      DELETE FROM deduplication WHERE (channel, deduplication_id) IN (
        SELECT channel, deduplication_id FROM deduplication WHERE (timestamp <= ? OR timestamp >= ?)
          AND NOT ${IS_KEPT} LIMIT ?)`)
    this.#deleteOthers = database.prepare<[number, number, string, number]>(`
      DELETE FROM deduplication WHERE timestamp > ? AND timestamp <= ?
        AND channel NOT IN (SELECT value FROM json_each(?)) AND NOT ${IS_KEPT}`)
    this.#stepEnd = database.prepare<[number, number], { timestamp: number }>(
      'SELECT timestamp FROM deduplication WHERE timestamp > ? ORDER BY timestamp LIMIT 1 OFFSET ?',
    )
  }

  /**
   * Returns the first send with this id, if it was within the window or the id is kept longer. Works also if the clock
   * was set back.
   */
  find(channel: StoredChannel, deduplicationId: string, now: number): FirstSend | undefined {
    const first = this.#select.get(channel.id, deduplicationId)
    if (first === undefined) return undefined
    const isRecent = Math.abs(now - first.timestamp) < this.#windowOf(channel)
    return isRecent || keptUntil(deduplicationId) > now ? first : undefined
  }

  #windowOf({ type, name }: StoredChannel): number {
    return deduplicationMsOf(this.#settings, type, name)
  }

  remember(channel: StoredChannel, deduplicationId: string, send: FirstSend): void {
    this.#upsert.run(channel.id, deduplicationId, send.sequence, send.id, send.timestamp)
  }

  /**
   * Deletes old ids, at most about `limit`; returns `true` if there are more. The ids of all channels with a longer
   * window are kept for the longest one.
   * @param channels Called only if a channel may have another window
   */
  forgetOld(now: number, limit: number, channels: () => Iterable<StoredChannel>): boolean {
    let longest = DEDUPLICATION_MS
    const longer: number[] = []
    if (this.#settings.uses('deduplication')) {
      for (const channel of channels()) {
        const window = this.#windowOf(channel)
        if (window > DEDUPLICATION_MS) longer.push(channel.id)
        longest = Math.max(longest, window)
      }
    }
    const more = this.#deleteOld.run(now - longest, now + longest, now, limit).changes === limit
    if (longest === DEDUPLICATION_MS) return more
    const except = JSON.stringify(longer)
    const to = now - DEDUPLICATION_MS
    if (except !== this.#longer || to < this.#deletedTo) this.#deletedTo = 0
    this.#longer = except
    const end = Math.min(to, this.#stepEnd.get(this.#deletedTo, limit)?.timestamp ?? to)
    this.#deleteOthers.run(this.#deletedTo, end, except, now)
    this.#deletedTo = end
    return more || end < to
  }
}
