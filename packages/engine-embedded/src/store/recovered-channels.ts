import type { StoredType } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { CHANNEL, KEY, LAST_SEQUENCE, MAX_CHANNEL_ID, SEQUENCE } from './message-rows.ts'
import { isDamage, isHopeless, sqliteCode } from './sqlite.ts'
import type { StoredChannel } from './stored-channel.ts'
import { CHANNEL_COLUMNS, channelFrom, channelValues, INSERT_CHANNEL, newChannel } from './stored-channel.ts'

/** A channel of the copy, with the number of messages that the damaged store reports for it. */
interface RecoveredChannel extends StoredChannel {
  /** The number of messages by the counters; undefined if the counters could not be read. */
  readonly expected: number | undefined
  /** The highest sequence. */
  readonly highest: number
}

/** The channels of a store that is copied. Their counters are calculated again from the copied rows. */
export class RecoveredChannels {
  readonly #byId = new Map<number, RecoveredChannel>()
  readonly #deleted: ReadonlySet<number>

  constructor(source: Database.Database) {
    const prepare = (order: string): Database.Statement<unknown[], SalvagedRow> =>
      source
        .prepare<unknown[], SalvagedRow>(
          `SELECT ${CHANNEL_COLUMNS} FROM channels NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id ${order}`,
        )
        .raw()
    const upwards = prepare('ASC')
    const downwards = prepare('DESC')
    const reader: RangeReader = {
      rows: (low, high, backwards) => (backwards ? downwards : upwards).iterate(low, high),
    }
    salvage(reader, 1, MAX_CHANNEL_ID, (row) => {
      const channel = channelOf(row)
      if (channel) this.#byId.set(channel.id, channel)
    })
    this.#deleted = new Set(
      orElse([], () => source.prepare<[], { channel: number }>('SELECT channel FROM garbage').all()).map(
        ({ channel }) => channel,
      ),
    )
  }

  /**
   * Returns the channels that have, or should have, rows in a table. A channel whose own row cannot be read gets a name
   * made from its id.
   */
  of(source: Database.Database, table: string, type: StoredType): RecoveredChannel[] {
    const next = source.prepare<[number, number], { channel: number }>(
      `SELECT ${CHANNEL} AS channel FROM ${table} WHERE key > ${KEY} ORDER BY key LIMIT 1`,
    )
    const ids = new Set([...this.#byId.values()].filter((channel) => channel.type === type).map(({ id }) => id))
    let known = [...ids].sort((a, b) => a - b)
    for (let id: number | undefined = 0; id !== undefined;) {
      const after: number = id
      known = known.filter((each) => each > after)
      // Continues after a damaged page, at the next known channel.
      id = orElse(known[0], () => next.get(after, LAST_SEQUENCE)?.channel)
      if (id !== undefined && id > after && id <= MAX_CHANNEL_ID) ids.add(id)
      else if (id !== undefined) break
    }
    const channels: RecoveredChannel[] = []
    for (const id of ids) {
      const channel = this.#byId.get(id) ?? (this.#deleted.has(id) ? undefined : this.#unnamed(id, type))
      if (channel?.type === type) channels.push(channel)
    }
    return channels
  }

  #unnamed(id: number, type: StoredType): RecoveredChannel {
    const channel = { ...newChannel(id, type, `recovered.${id}`), expected: undefined, highest: LAST_SEQUENCE }
    this.#byId.set(id, channel)
    return channel
  }

  /** Returns whether the copy has an events store with this id. */
  hasEventsStore(id: number): boolean {
    return this.#byId.get(id)?.type === 'events_store'
  }

  /** Counts a message that was copied. */
  count(channel: RecoveredChannel, delayed: boolean, sequence: number, timestamp: number, size: number): void {
    if (delayed) channel.delayed++
    else channel.entries++
    channel.bytes += size
    channel.lastSequence = Math.max(channel.lastSequence, sequence)
    if (channel.type !== 'events_store') return
    channel.lastTimestamp = Math.max(channel.lastTimestamp, timestamp)
    channel.firstSequence = channel.firstSequence === 0 ? sequence : Math.min(channel.firstSequence, sequence)
  }

  /** Writes the channels, and returns a report of the missing rows. */
  write(target: Database.Database): { channels: number; messages: number; leftOut: string[] } {
    const insert = target.prepare(INSERT_CHANNEL)
    const leftOut: string[] = []
    let messages = 0
    for (const channel of this.#byId.values()) {
      const { id, type, name, entries, delayed, expected } = channel
      insert.run(id, type, name, ...channelValues(channel))
      messages += entries + delayed
      const shown = `${type} ${JSON.stringify(name)}`
      if (expected === undefined) {
        leftOut.push(`${shown}: its name and counters; it has ${entries + delayed} messages`)
      } else if (expected > entries + delayed) {
        leftOut.push(`${shown}: ${expected - entries - delayed} of ${expected} messages`)
      }
    }
    return { channels: this.#byId.size, messages, leftOut }
  }
}

/** Converts a row to a channel; undefined if the row contains garbage. */
function channelOf(row: SalvagedRow): RecoveredChannel | undefined {
  const [id, type, name, ...values] = row
  if (type !== 'queues' && type !== 'events_store') return undefined
  if (typeof name !== 'string' || name === '') return undefined
  const read = channelFrom(id, type, name, values)
  const { entries, delayed, lastSequence } = read
  const counted = { firstSequence: 0, entries: 0, delayed: 0, bytes: 0 }
  return { ...read, ...counted, expected: entries + delayed, highest: lastSequence || LAST_SEQUENCE }
}

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isDamage(error) && !isHopeless(sqliteCode(error))) throw error
    return otherwise
  }
}

/** A row as an array. The first value is its key: its sequence, or its id. */
export type SalvagedRow = readonly [place: number, ...values: unknown[]]

/**
 * The maximum number of failed reads in one range; the rows after them are left out. A failed read costs some 10 µs.
 */
const MAX_FAILURES = 10_000

interface RangeReader {
  /** Returns the rows with keys from `low` to `high`, forwards or backwards. */
  rows(low: number, high: number, backwards: boolean): Iterable<SalvagedRow>
}

/** Returns a reader of one channel's rows in a table, by their sequences. */
export function channelRows(
  database: Database.Database,
  table: string,
  columns: readonly string[],
): (id: number) => RangeReader {
  const prepare = (order: string): Database.Statement<unknown[], SalvagedRow> =>
    database
      .prepare<unknown[], SalvagedRow>(
        `SELECT ${[SEQUENCE, ...columns].join(', ')} FROM ${table} WHERE key >= ${KEY} AND key <= ${KEY} ORDER BY key ${order}`,
      )
      .raw()
  const upwards = prepare('ASC')
  const downwards = prepare('DESC')
  return (id) => ({
    rows: (low, high, backwards) => (backwards ? downwards : upwards).iterate(id, low, id, high),
  })
}

/**
 * Passes every readable row of a range to a function. An unreadable page hides its rows and, if it is an inner page,
 * the pages below it. So the range is read from both ends up to the damage, then from the middle of the rest, and so
 * on.
 */
export function salvage(reader: RangeReader, low: number, high: number, take: (row: SalvagedRow) => void): void {
  const ranges: [low: number, high: number][] = [[low, high]]
  let failures = 0
  // Widest range first, so that rows between two damaged pages are found before each unreadable row is tried.
  for (let next = ranges.shift(); next && failures < MAX_FAILURES; next = ranges.shift()) {
    const first = read(reader, next[0], next[1], false, take)
    if (first === undefined) continue
    const last = read(reader, first, next[1], true, take)
    failures++
    if (last === undefined || first >= last) continue
    const middle = Math.floor((first + last) / 2)
    ranges.push([first, middle], [middle + 1, last])
  }
}

/** Returns the start of the rest that could not be read; undefined if everything was read. */
function read(
  reader: RangeReader,
  low: number,
  high: number,
  backwards: boolean,
  take: (row: SalvagedRow) => void,
): number | undefined {
  let rest = backwards ? high : low
  try {
    for (const row of reader.rows(low, high, backwards)) {
      take(row)
      rest = backwards ? row[0] - 1 : row[0] + 1
    }
    return undefined
  } catch (error) {
    if (!isDamage(error) && !isHopeless(sqliteCode(error))) throw error
    return rest
  }
}
