import type { SettingsTable } from '@signalbox/broker-core/engine'
import { DEDUPLICATION_MS, deduplicationMsOf, keptUntil } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { DEDUPLICATION } from '../store/damage.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { FirstSend } from './recent-sends.ts'
import { IS_KEPT, RecentSends } from './recent-sends.ts'
import { touchingPart } from './refusals.ts'

/**
 * Recognizes repeated sends. The sends of the last two minutes are in {@link RecentSends}. The table `deduplication` has
 * those that are kept longer, and those of an older program, which had no other table.
 */
export class Deduplication {
  readonly #settings: SettingsTable
  readonly #recent: RecentSends
  readonly #select
  readonly #newest
  readonly #deleteOld
  readonly #deleteOthers
  readonly #stepEnd
  /** The channels with longer windows at the last deletion, as JSON. */
  #longer = ''
  /** The time up to which all ids of other channels were deleted: the others are not searched again. */
  #deletedTo = 0
  /** The last timestamp in the table when the store was opened: any channel may have ids there. */
  #newestAtOpen = Number.POSITIVE_INFINITY

  constructor(database: Database.Database, settings: SettingsTable) {
    this.#settings = settings
    this.#recent = new RecentSends(database)
    this.#select = database.prepare<[number, string], FirstSend>(
      'SELECT sequence, id, timestamp FROM deduplication WHERE channel = ? AND deduplication_id = ?',
    )
    this.#newest = database.prepare<[], { timestamp: number | null }>(
      'SELECT max(timestamp) AS timestamp FROM deduplication',
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

  /** Reads the recent ids into memory; returns the highest id of a channel that has some. */
  load(): number {
    return touchingPart(DEDUPLICATION, undefined, () => {
      this.#newestAtOpen = this.#newest.get()?.timestamp ?? 0
      return this.#recent.load()
    })
  }

  /**
   * Returns the first send with this id, if it was within the window or the id is kept longer. Works also if the clock
   * was set back.
   */
  find(channel: StoredChannel, deduplicationId: string, now: number): FirstSend | undefined {
    const window = this.#windowOf(channel)
    const isKept = keptUntil(deduplicationId) > now
    const mayBeStored = isKept || window > DEDUPLICATION_MS || now - DEDUPLICATION_MS < this.#newestAtOpen
    const first = touchingPart(DEDUPLICATION, undefined, () => {
      const recent = this.#recent.find(channel.id, deduplicationId)
      return recent ?? (mayBeStored ? this.#select.get(channel.id, deduplicationId) : undefined)
    })
    return first && (isKept || Math.abs(now - first.timestamp) < window) ? first : undefined
  }

  #windowOf({ type, name }: StoredChannel): number {
    return deduplicationMsOf(this.#settings, type, name)
  }

  remember(channel: StoredChannel, deduplicationId: string, send: FirstSend): void {
    touchingPart(DEDUPLICATION, undefined, () => this.#recent.add(channel.id, deduplicationId, send))
  }

  /** Writes the collected sends. Call it before the commit. */
  flush(): void {
    touchingPart(DEDUPLICATION, undefined, () => this.#recent.flush())
  }

  /** Drops the collected sends after a rollback. */
  discard(): void {
    this.#recent.discard()
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
    const except = JSON.stringify(longer)
    const moreRecent = this.#recent.deleteOld(now, limit, except)
    const more = this.#deleteOld.run(now - longest, now + longest, now, limit).changes === limit || moreRecent
    if (longest === DEDUPLICATION_MS) return more
    const to = now - DEDUPLICATION_MS
    if (except !== this.#longer || to < this.#deletedTo) this.#deletedTo = 0
    this.#longer = except
    const end = Math.min(to, this.#stepEnd.get(this.#deletedTo, limit)?.timestamp ?? to)
    this.#deleteOthers.run(this.#deletedTo, end, except, now)
    this.#deletedTo = end
    return more || end < to
  }
}
