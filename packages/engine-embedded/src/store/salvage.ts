import type Database from 'better-sqlite3'

import { KEY, SEQUENCE } from './keys.ts'
import { isDamage, isHopeless, sqliteCode } from './sqlite-code.ts'

/** A row as an array. The first value is its key: its sequence, or its id. */
export type SalvagedRow = readonly [place: number, ...values: unknown[]]

/**
 * The maximum number of failed reads in one range; the rows after them are left out. A failed read costs some 10 µs.
 */
const MAX_FAILURES = 10_000

export interface RangeReader {
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
