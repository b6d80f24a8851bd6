import type { ReadOptions, StoredEvent } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { plainBytes } from '../bytes.ts'
import type { LiveChannel } from '../channel-registry.ts'
import { KEY, LAST_SEQUENCE, SEQUENCE } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { parseTags } from '../store/tags.ts'

/** An entry with its size in bytes, as counters go by it. */
export interface LogItem {
  readonly event: StoredEvent
  readonly size: number
}

/** An events store that is read. What lies past its last known sequence is written, but not synced yet. */
type StoredLog = Pick<LiveChannel, 'id' | 'name' | 'lastSequence'>

interface EntryRow {
  readonly sequence: number
  readonly id: string
  readonly clientId: string
  readonly timestamp: number
  readonly size: number
  readonly metadata: string
  readonly tags: string
  readonly logKey: string | null
  readonly tombstone: number
  readonly body: Uint8Array
}

type Range = [number, number, number, number, number]

interface Statements {
  readonly range: Database.Statement<Range, EntryRow>
  readonly latest: Database.Statement<Range, EntryRow>
  readonly rangeSizes: Database.Statement<Range, { bytes: number }>
  readonly latestSizes: Database.Statement<Range, { bytes: number }>
  readonly at: Database.Statement<[number, number, number, number], { sequence: number; timestamp: number }>
  readonly lastOfKey: Database.Statement<[number, string], { sequence: number }>
}

const COLUMNS = `${SEQUENCE} AS sequence, id, client_id AS clientId, timestamp, size, metadata, tags, log_key AS logKey,
  tombstone, body`
const WITHIN = `FROM log_entries WHERE key >= ${KEY} AND key <= ${KEY} ORDER BY key`

/** Reads entries of events stores on the main thread, each call one statement run to its end. */
export class LogReader {
  readonly #store: Store
  #connection: Database.Database | undefined
  #statements: Statements | undefined

  constructor(store: Store) {
    this.#store = store
  }

  #prepared(): Statements {
    const connection = this.#store.reader
    if (this.#statements && this.#connection === connection) return this.#statements
    this.#connection = connection
    this.#statements = {
      range: connection.prepare(`SELECT ${COLUMNS} ${WITHIN} LIMIT ?`),
      latest: connection.prepare(`SELECT ${COLUMNS} ${WITHIN} DESC LIMIT ?`),
      rangeSizes: connection.prepare(`SELECT size AS bytes ${WITHIN} LIMIT ?`),
      latestSizes: connection.prepare(`SELECT size AS bytes ${WITHIN} DESC LIMIT ?`),
      at: connection.prepare(`SELECT ${SEQUENCE} AS sequence, timestamp ${WITHIN} LIMIT 1`),
      lastOfKey: connection.prepare('SELECT sequence FROM log_keys WHERE channel = ? AND log_key = ?'),
    }
    return this.#statements
  }

  /** Whether something of it is known to be unreadable: it does not come back by waiting. */
  damaged(name: string): boolean {
    return this.#store.damage.has('events_store', name)
  }

  /** Entries from a sequence on, in order; at least one if there is one, then none past `maxBytes` of bodies. */
  from(log: StoredLog, sequence: number, max: number, maxBytes?: number): LogItem[] {
    return this.#store.reading('events_store', log.name, () => this.#from(log, sequence, max, maxBytes))
  }

  #from({ id, name, lastSequence }: StoredLog, sequence: number, max: number, maxBytes?: number): LogItem[] {
    const { range, rangeSizes } = this.#prepared()
    const limit = maxBytes === undefined ? max : fitting(rangeSizes, [id, sequence, id, lastSequence, max], maxBytes)
    return range.all(id, sequence, id, lastSequence, limit).map((row) => itemOf(row, name))
  }

  /** The newest entries, newest first. */
  latest(log: StoredLog, max: number, maxBytes?: number): LogItem[] {
    return this.#store.reading('events_store', log.name, () => this.#latest(log, max, maxBytes))
  }

  #latest({ id, name, lastSequence }: StoredLog, max: number, maxBytes?: number): LogItem[] {
    const { latest, latestSizes } = this.#prepared()
    const limit = maxBytes === undefined ? max : fitting(latestSizes, [id, 0, id, lastSequence, max], maxBytes)
    return latest.all(id, 0, id, lastSequence, limit).map((row) => itemOf(row, name))
  }

  read(log: StoredLog, options: ReadOptions): LogItem[] {
    const { fromSequence = 1, fromTimestamp, maxMessages, maxBytes } = options
    const first = fromTimestamp === undefined ? fromSequence : this.firstSince(log, fromTimestamp)
    if (first === undefined || first > LAST_SEQUENCE) return []
    return this.from(log, first, maxMessages, maxBytes)
  }

  /** Alone of the reads it may show an entry in the moment before its sync: the one it replaces may be gone already. */
  lastOfKey({ id, name }: StoredLog, key: string): StoredEvent | undefined {
    const sequence = this.#store.reading('events_store', name, () => this.#prepared().lastOfKey.get(id, key)?.sequence)
    if (sequence === undefined) return undefined
    const [item] = this.from({ id, name, lastSequence: sequence }, sequence, 1)
    return item?.event
  }

  /**
   * The sequence of the first entry at or after a time. Timestamps never fall within a channel, so this halves the
   * range of sequences, some 40 look-ups at most, and appending needs no index by time.
   */
  firstSince(log: StoredLog, timestamp: number): number | undefined {
    return this.#store.reading('events_store', log.name, () => this.#firstSince(log, timestamp))
  }

  #firstSince({ id, lastSequence }: StoredLog, timestamp: number): number | undefined {
    const { at } = this.#prepared()
    let low = 1
    let high = lastSequence + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const entry = at.get(id, middle, id, lastSequence)
      if (!entry || entry.timestamp >= timestamp) high = middle
      else low = entry.sequence + 1
    }
    return at.get(id, low, id, lastSequence)?.sequence
  }
}

function fitting(sizes: Database.Statement<Range, { bytes: number }>, range: Range, maxBytes: number): number {
  let count = 0
  let sum = 0
  for (const { bytes } of sizes.all(...range)) {
    sum += bytes
    if (count > 0 && sum > maxBytes) break
    count++
  }
  return count
}

function itemOf(row: EntryRow, channel: string): LogItem {
  const { id, clientId, metadata, timestamp, sequence, logKey, tombstone, size } = row
  const event: StoredEvent = {
    id,
    clientId,
    body: plainBytes(row.body),
    metadata,
    tags: parseTags(row.tags),
    channel,
    timestamp,
    sequence,
    ...(logKey === null ? {} : { key: logKey }),
    ...(tombstone === 1 ? { tombstone: true as const } : {}),
  }
  return { event, size }
}
