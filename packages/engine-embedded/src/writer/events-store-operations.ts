import type { SettingsTable } from '@signalbox/broker-core/engine'
import { groupLimit, isCompact, retentionOf, TOMBSTONE_MS } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { GROUP_POSITIONS } from '../store/damage.ts'
import type { EntryRow } from '../store/message-rows.ts'
import { entryValues, INSERT_ENTRY, KEY, LAST_SEQUENCE, SEQUENCE } from '../store/message-rows.ts'
import { GROUP_POSITIONS_TABLE } from '../store/schema.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type { ChannelTable } from './channel-table.ts'
import type { Deduplication } from './deduplication.ts'
import type {
  AppendOperation,
  AppendOperationResult,
  JoinGroupOperation,
  JoinGroupOperationResult,
  StorePositionsOperation,
  StorePositionsOperationResult,
} from './operations.ts'
import type { SkippedChannels } from './refusals.ts'
import { RefusedError, touching, touchingPart } from './refusals.ts'

interface EventsStoreLimits {
  /** The maximum age of entries, in ms; 0 keeps all. */
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
}

/** The number of rows that one step of retention checks. */
const STEP = 256

interface PlacedEntry {
  readonly sequence: number
  readonly size: number
  readonly timestamp: number
  readonly eventKey: string | null
}

/** The writer's operations on events stores: appends and retention. */
export class EventsStoreOperations {
  readonly #channels: ChannelTable
  readonly #deduplication: Deduplication
  readonly #limits: EventsStoreLimits
  readonly #settings: SettingsTable
  readonly #skipped: SkippedChannels
  /**
   * The sequence and time of the first entries, so that a sweep over many channels reads only those with old entries.
   */
  readonly #firstEntry = new WeakMap<StoredChannel, { sequence: number; timestamp: number }>()
  readonly #insert
  readonly #lastOfKey
  readonly #addKey
  readonly #setLastOfKey
  readonly #deleteLastOfKey
  readonly #entry
  readonly #oldest
  readonly #delete
  readonly #deleteReplaced
  readonly #replaced
  readonly #tombstones

  constructor(
    database: Database.Database,
    channels: ChannelTable,
    deduplication: Deduplication,
    limits: EventsStoreLimits,
    settings: SettingsTable,
    skipped: SkippedChannels,
  ) {
    this.#channels = channels
    this.#deduplication = deduplication
    this.#limits = limits
    this.#settings = settings
    this.#skipped = skipped
    this.#insert = database.prepare(INSERT_ENTRY)
    this.#lastOfKey = database.prepare<[number, string], { sequence: number }>(
      'SELECT sequence FROM log_keys WHERE channel = ? AND log_key = ?',
    )
    this.#addKey = database.prepare<[number, string, number]>(
      'INSERT OR IGNORE INTO log_keys (channel, log_key, sequence) VALUES (?, ?, ?)',
    )
    this.#setLastOfKey = database.prepare<[number, string, number]>(
      'INSERT OR REPLACE INTO log_keys (channel, log_key, sequence) VALUES (?, ?, ?)',
    )
    this.#deleteLastOfKey = database.prepare<[number, string, number]>(
      'DELETE FROM log_keys WHERE channel = ? AND log_key = ? AND sequence = ?',
    )
    const columns = `${SEQUENCE} AS sequence, size, timestamp, log_key AS eventKey`
    this.#entry = database.prepare<[number, number], PlacedEntry>(
      `SELECT ${columns} FROM log_entries WHERE key = ${KEY}`,
    )
    this.#oldest = database.prepare<[number, number, number, number, number], PlacedEntry>(
      `SELECT ${columns} FROM log_entries WHERE key > ${KEY} AND key <= ${KEY} ORDER BY key LIMIT ?`,
    )
    this.#delete = database.prepare<[number, number]>(`DELETE FROM log_entries WHERE key = ${KEY}`)
    this.#deleteReplaced = database.prepare<[number, number], { size: number }>(
      `DELETE FROM log_entries WHERE key = ${KEY} RETURNING size`,
    )
    this.#replaced = database.prepare<[number, number, number, number, number, number], PlacedEntry>(`
      SELECT ${columns} FROM log_entries
      WHERE key > ${KEY} AND key <= ${KEY} AND log_key IS NOT NULL AND ${SEQUENCE} <>
        (SELECT sequence FROM log_keys WHERE channel = ? AND log_keys.log_key = log_entries.log_key)
      ORDER BY key LIMIT ?`)
    this.#tombstones = database.prepare<[number, string, number], { channel: number; sequence: number }>(`
      SELECT (key >> 40) AS channel, ${SEQUENCE} AS sequence FROM log_entries
      WHERE tombstone = 1 AND timestamp <= ? AND (key >> 40) IN (SELECT id FROM channels WHERE compacted = 1)
        AND (key >> 40) NOT IN (SELECT value FROM json_each(?))
      ORDER BY timestamp LIMIT ?`)
  }

  /** Appends an entry. @throws RefusedError CONFLICT */
  append({ channel: name, now, entry }: AppendOperation): AppendOperationResult {
    const existing = this.#channels.get('events_store', name)
    const { deduplicationId, id, key } = entry
    if (existing && deduplicationId !== undefined) {
      const first = this.#deduplication.find(existing, deduplicationId, now)
      if (first) {
        const { sequence, timestamp } = first
        return { kind: 'append', channelId: existing.id, sequence, timestamp, duplicateOf: first.id }
      }
    }
    // The most frequent condition needs one look into the index: a key that must be new is added, if it is.
    const isAdded =
      existing !== undefined &&
      key !== null &&
      entry.expectLastOfKey === 0 &&
      this.#addKey.run(existing.id, key, existing.lastSequence + 1).changes > 0
    const last = existing && key !== null && !isAdded ? this.#lastOfKey.get(existing.id, key) : undefined
    checkExpected(name, entry, last?.sequence ?? 0)
    const channel = this.#channels.editOrCreate('events_store', name)
    // Earlier entries of another store have no keys.
    if (channel.entries === 0 && isCompact(this.#settings, name)) channel.compacted = true
    const { sequence, timestamp } = this.#store(channel, entry, now)
    if (key !== null && !isAdded) {
      this.#setLastOfKey.run(channel.id, key, sequence)
      if (last && channel.compacted) this.#removeReplaced(channel, last.sequence)
    }
    if (deduplicationId !== undefined) {
      this.#deduplication.remember(channel, deduplicationId, { sequence, id, timestamp })
    }
    this.#trimBytes(channel)
    return { kind: 'append', channelId: channel.id, sequence, timestamp, duplicateOf: undefined }
  }

  #store(channel: StoredChannel, entry: EntryRow, now: number): { sequence: number; timestamp: number } {
    const sequence = channel.lastSequence + 1
    // The clock may be set back, but timestamps in an events store never decrease.
    const timestamp = Math.max(now, channel.lastTimestamp)
    const { size } = entry
    this.#insert.run(channel.id, sequence, timestamp, ...entryValues(entry))
    if (channel.entries === 0) channel.firstSequence = sequence
    channel.entries++
    channel.lastSequence = sequence
    channel.lastTimestamp = timestamp
    channel.bytes += size
    channel.incoming++
    channel.incomingBytes += size
    channel.lastActivity = Math.max(channel.lastActivity, now)
    return { sequence, timestamp }
  }

  /** Removes an entry that a later one of its key has replaced. */
  #removeReplaced(channel: StoredChannel, sequence: number): void {
    const removed = this.#deleteReplaced.get(channel.id, sequence)
    if (removed === undefined) return
    channel.entries--
    channel.bytes -= removed.size
    if (sequence === channel.firstSequence) channel.firstSequence = this.#oldestRows(channel, 1)[0]?.sequence ?? 0
  }

  #removeEntry(channel: StoredChannel, sequence: number): void {
    const row = this.#entry.get(channel.id, sequence)
    if (row) this.#removeRows(channel, [row])
  }

  #removeRows(channel: StoredChannel, rows: readonly PlacedEntry[]): void {
    this.#channels.edit(channel)
    for (const { sequence, size, eventKey } of rows) {
      this.#delete.run(channel.id, sequence)
      if (eventKey !== null) this.#deleteLastOfKey.run(channel.id, eventKey, sequence)
      channel.entries--
      channel.bytes -= size
    }
    const [first] = this.#oldestRows(channel, 1)
    channel.firstSequence = first?.sequence ?? 0
  }

  #oldestRows(channel: StoredChannel, limit: number): PlacedEntry[] {
    return this.#oldest.all(channel.id, 0, channel.id, LAST_SEQUENCE, limit)
  }

  /** The settings of the channel win over its options, and those over the limits of the server. 0 keeps all. */
  #maxAgeOf({ name, maxAgeMs }: StoredChannel): number {
    const seconds = retentionOf(this.#settings, 'events_store', name)?.max_age_seconds
    return seconds === undefined ? (maxAgeMs ?? this.#limits.eventsStoreMaxAgeMs) : seconds * 1_000
  }

  #maxBytesOf({ name, maxBytes }: StoredChannel): number {
    return retentionOf(this.#settings, 'events_store', name)?.max_bytes ?? maxBytes ?? this.#limits.eventsStoreMaxBytes
  }

  /** Removes the oldest entries until the rest fits. The newest entry always remains. */
  #trimBytes(channel: StoredChannel): void {
    while (this.#trimStep(channel));
  }

  /** Runs one step of `#trimBytes`; returns true if there may be more. */
  #trimStep(channel: StoredChannel): boolean {
    const limit = this.#maxBytesOf(channel)
    if (limit === 0 || channel.bytes <= limit || channel.entries <= 1) return false
    const excess: PlacedEntry[] = []
    let bytes = channel.bytes
    for (const row of this.#oldestRows(channel, Math.min(STEP, channel.entries - 1))) {
      if (bytes <= limit) break
      excess.push(row)
      bytes -= row.size
    }
    this.#removeRows(channel, excess)
    return true
  }

  /**
   * Applies new settings to an existing events store: removes entries over the limits, or replaced ones in a compacted
   * store.
   */
  applyOptions(channel: StoredChannel): void {
    this.#trimBytes(channel)
    if (!channel.compacted) return
    for (;;) {
      const rows = this.#replaced.all(channel.id, 0, channel.id, LAST_SEQUENCE, channel.id, STEP)
      if (rows.length === 0) return
      this.#removeRows(channel, rows)
    }
  }

  /**
   * Removes entries over their maximum age, and over the maximum size of settings that have changed; returns true if
   * there are more.
   */
  sweep(now: number): boolean {
    let more = false
    const sized = this.#settings.uses('retention')
    for (const channel of this.#channels.all('events_store')) {
      if (channel.entries === 0 || this.#skipped.hasId(channel.id)) continue
      if (sized && touching(channel, () => this.#trimStep(channel))) more = true
      const age = this.#maxAgeOf(channel)
      if (age > 0 && touching(channel, () => this.#trimAge(channel, now - age))) more = true
    }
    return more
  }

  #trimAge(channel: StoredChannel, before: number): boolean {
    const first = this.#firstEntry.get(channel)
    if (first?.sequence === channel.firstSequence && first.timestamp >= before) return false
    const rows = this.#oldestRows(channel, STEP)
    const old = rows.filter(({ timestamp }) => timestamp < before)
    if (old.length > 0) this.#removeRows(channel, old)
    const next = rows[old.length]
    if (next) this.#firstEntry.set(channel, { sequence: next.sequence, timestamp: next.timestamp })
    return old.length === STEP
  }

  /** Removes old tombstones; returns true if there are more. */
  sweepTombstones(now: number): boolean {
    const rows = this.#tombstones.all(now - TOMBSTONE_MS, this.#skipped.ids, STEP)
    if (rows.length === 0) return false
    const byId = new Map([...this.#channels.all('events_store')].map((channel) => [channel.id, channel]))
    for (const { channel: id, sequence } of rows) {
      const channel = byId.get(id)
      if (channel) touching(channel, () => this.#removeEntry(channel, sequence))
    }
    return rows.length === STEP
  }
}

function checkExpected(name: string, { key, expectLastOfKey }: EntryRow, last: number): void {
  if (expectLastOfKey === undefined || key === null || expectLastOfKey === last) return
  throw new RefusedError(
    'CONFLICT',
    `the last entry of key ${JSON.stringify(key)} in ${JSON.stringify(name)} is ${last}, not ${expectLastOfKey}; read it again`,
    { key, last },
  )
}

/** The number of positions that one step of maintenance removes. */
const POSITIONS_STEP = 2_000

interface GroupLimits {
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
    const removed = this.#existing()?.forgetUnused.run(now - this.#limits.durableGroupMs, POSITIONS_STEP).changes ?? 0
    return removed === POSITIONS_STEP
  }

  /** Prepares the statements again after a rollback, which may have removed the table. */
  discard(): void {
    this.#statements = undefined
  }
}
