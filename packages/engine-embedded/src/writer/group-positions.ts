import { groupLimit } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { GROUP_POSITIONS } from '../store/damage.ts'
import { GROUP_POSITIONS_TABLE } from '../store/schema.ts'
import type { ChannelTable } from './channel-table.ts'
import { touchingPart } from './damaged.ts'
import type {
  JoinGroupOperation,
  JoinGroupOperationResult,
  StorePositionsOperation,
  StorePositionsOperationResult,
} from './operations.ts'
import { RefusedError } from './refusals.ts'

/** The number of positions that one step of maintenance removes. */
const STEP = 2_000

export interface GroupLimits {
  /** The time for which an unused position is kept, in ms. */
  readonly durableGroupMs: number
  /** The maximum number of positions of one events store. */
  readonly maxDurableGroups: number
}

interface Statements {
  readonly position: Database.Statement<[number, string], { position: number }>
  readonly count: Database.Statement<[number], { groups: number }>
  readonly advance: Database.Statement<[number, number, string]>
  readonly upsert: Database.Statement<[number, string, number, number]>
  readonly forget: Database.Statement<[number, number]>
  readonly forgetUnused: Database.Statement<[number, number]>
}

/** The stored positions of durable groups. */
export class GroupPositions {
  readonly #database: Database.Database
  readonly #channels: ChannelTable
  readonly #limits: GroupLimits
  readonly #hasTable
  #statements: Statements | undefined

  constructor(database: Database.Database, channels: ChannelTable, limits: GroupLimits) {
    this.#database = database
    this.#channels = channels
    this.#limits = limits
    this.#hasTable = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'group_positions'")
  }

  /**
   * Creates the table in a store from before it, within the running transaction. Not when the store is opened: a store
   * on a full disk must open.
   */
  #made(): Statements {
    if (!this.#statements && !this.#hasTable.get()) this.#database.exec(GROUP_POSITIONS_TABLE)
    return (this.#statements ??= this.#prepare())
  }

  /** Returns the statements; undefined if the store has no such table. */
  #existing(): Statements | undefined {
    if (!this.#statements && this.#hasTable.get()) this.#statements = this.#prepare()
    return this.#statements
  }

  #prepare(): Statements {
    const database = this.#database
    return {
      position: database.prepare('SELECT position FROM group_positions WHERE channel = ? AND name = ?'),
      count: database.prepare('SELECT count(*) AS groups FROM group_positions WHERE channel = ?'),
      // Never lower: a position that is stored late may be older. Leaves the index by time unchanged.
      advance: database.prepare(
        'UPDATE group_positions SET position = max(position, ?) WHERE channel = ? AND name = ?',
      ),
      upsert: database.prepare(`
        INSERT INTO group_positions (channel, name, position, used_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (channel, name) DO UPDATE
        SET position = max(position, excluded.position), used_at = excluded.used_at`),
      forget: database.prepare(`
        DELETE FROM group_positions WHERE (channel, name) IN (
          SELECT channel, name FROM group_positions WHERE channel = ? LIMIT ?)`),
      forgetUnused: database.prepare(`
        DELETE FROM group_positions WHERE (channel, name) IN (
          SELECT channel, name FROM group_positions WHERE used_at <= ? LIMIT ?)`),
    }
  }

  /** @throws RefusedError GROUP_LIMIT */
  join({ channel, channelId, group, start, now }: JoinGroupOperation): JoinGroupOperationResult {
    if (this.#channels.get('events_store', channel)?.id !== channelId) return { kind: 'joinGroup', position: undefined }
    return touchingPart(GROUP_POSITIONS, undefined, () => {
      const { position, count, upsert } = this.#made()
      const stored = position.get(channelId, group)?.position
      const limit = this.#limits.maxDurableGroups
      if (stored === undefined && (count.get(channelId)?.groups ?? 0) >= limit) {
        const { message, details } = groupLimit(channel, limit)
        throw new RefusedError('GROUP_LIMIT', message, { channel: String(details['channel']), limit })
      }
      upsert.run(channelId, group, stored ?? start, now)
      return { kind: 'joinGroup', position: stored ?? start }
    })
  }

  /** Stores the positions. Leaves out those of channels that were deleted meanwhile. */
  store({ positions, now }: StorePositionsOperation): StorePositionsOperationResult {
    touchingPart(GROUP_POSITIONS, undefined, () => {
      const { advance, upsert } = this.#made()
      for (const { channel, channelId, group, position, used } of positions) {
        if (this.#channels.get('events_store', channel)?.id !== channelId) continue
        if (!used && advance.run(position, channelId, group).changes > 0) continue
        upsert.run(channelId, group, position, now)
      }
    })
    return { kind: 'storePositions' }
  }

  /** Removes positions of a deleted channel, at most `limit`; returns their number. */
  forget(channelId: number, limit: number): number {
    return this.#existing()?.forget.run(channelId, limit).changes ?? 0
  }

  /** Removes positions that no subscriber used for long; returns true if there may be more. */
  forgetUnused(now: number): boolean {
    const removed = this.#existing()?.forgetUnused.run(now - this.#limits.durableGroupMs, STEP).changes ?? 0
    return removed === STEP
  }

  /** Prepares the statements again after a rollback, which may have removed the table. */
  discard(): void {
    this.#statements = undefined
  }
}
