import type Database from 'better-sqlite3'

import { KEY, SEQUENCE } from './schema.ts'
import { isDamage, isHopeless, sqliteCode } from './sqlite-code.ts'

/** A row as an array that begins with what it is found by: its sequence, or its id. */
export type SalvagedRow = readonly [place: number, ...values: unknown[]]

/** Reads that may fail in one range; beyond it the rest is left out. A failing read costs some 10 µs. */
const MAX_FAILURES = 10_000

export interface RangeReader {
  /** Rows whose place is from `low` to `high`, in order or backwards. */
  rows(low: number, high: number, backwards: boolean): Iterable<SalvagedRow>
}

/** Reads one channel's rows of a table by their sequences. */
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
 * Hands over every row of a range that can be read. A page that cannot be read hides its rows and, where it is an inner
 * one, the way to those below it: the range is read from both ends up to the damage, then from its middle, and so on.
 */
export function salvage(reader: RangeReader, low: number, high: number, take: (row: SalvagedRow) => void): void {
  const ranges: [low: number, high: number][] = [[low, high]]
  let failures = 0
  // Widest first, so that what lies between two damaged pages comes before each of their rows is tried.
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

/** Returns where the rest begins that could not be read; undefined when all was. */
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
