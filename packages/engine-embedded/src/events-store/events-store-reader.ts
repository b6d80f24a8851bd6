import type { ReadOptions, ResultLimit, StoredEvent } from '@signalbox/broker-core/engine'
import { ResultSize } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import type { LiveChannel } from '../channel-registry.ts'
import type { ReadEntryRow } from '../store/message-rows.ts'
import { KEY, LAST_SEQUENCE, READ_ENTRY_COLUMNS, readEvent, SEQUENCE } from '../store/message-rows.ts'
import type { Store } from '../store/store.ts'

/** An entry with its size in bytes, as counters use it. */
export interface EventsStoreItem {
  readonly event: StoredEvent
  readonly size: number
}

/** An events store to read. Entries after its last known sequence are written, but not synced yet. */
type OpenEventsStore = Pick<LiveChannel, 'id' | 'name' | 'lastSequence'>

type Range = [number, number, number, number, number]

interface Statements {
  readonly range: Database.Statement<Range, ReadEntryRow>
  readonly latest: Database.Statement<Range, ReadEntryRow>
  readonly rangeSizes: Database.Statement<Range, { bytes: number }>
  readonly latestSizes: Database.Statement<Range, { bytes: number }>
  readonly at: Database.Statement<[number, number, number, number], { sequence: number; timestamp: number }>
  readonly lastOfKey: Database.Statement<[number, string], { sequence: number }>
}

const WITHIN = `FROM log_entries WHERE key >= ${KEY} AND key <= ${KEY} ORDER BY key`

function prepare(connection: Database.Database): Statements {
  return {
    range: connection.prepare(`SELECT ${READ_ENTRY_COLUMNS} ${WITHIN} LIMIT ?`),
    latest: connection.prepare(`SELECT ${READ_ENTRY_COLUMNS} ${WITHIN} DESC LIMIT ?`),
    rangeSizes: connection.prepare(`SELECT size AS bytes ${WITHIN} LIMIT ?`),
    latestSizes: connection.prepare(`SELECT size AS bytes ${WITHIN} DESC LIMIT ?`),
    at: connection.prepare(`SELECT ${SEQUENCE} AS sequence, timestamp ${WITHIN} LIMIT 1`),
    lastOfKey: connection.prepare('SELECT sequence FROM log_keys WHERE channel = ? AND log_key = ?'),
  }
}

/** Reads entries of events stores on the main thread. Each call runs one statement to its end. */
export class EventsStoreReader {
  readonly #store: Store
  readonly #prepared: () => Statements

  constructor(store: Store) {
    this.#store = store
    this.#prepared = store.statements(prepare)
  }

  /** Returns whether a part of the channel is known to be unreadable, so that waiting does not help. */
  damaged(name: string): boolean {
    return this.#store.damage.has('events_store', name)
  }

  /**
   * Returns entries from a sequence on, in order: at least one if there is one, and no more than `maxBytes` of bodies
   * after it.
   */
  from(eventsStore: OpenEventsStore, sequence: number, max: number, limit: ResultLimit = {}): EventsStoreItem[] {
    return this.#store.reading('events_store', eventsStore.name, () => this.#from(eventsStore, sequence, max, limit))
  }

  #from(
    { id, name, lastSequence }: OpenEventsStore,
    sequence: number,
    max: number,
    limit: ResultLimit,
  ): EventsStoreItem[] {
    const { range, rangeSizes } = this.#prepared()
    return fitting(range, rangeSizes, [id, sequence, id, lastSequence, max], name, limit)
  }

  /** Returns the newest entries, newest first. */
  latest(eventsStore: OpenEventsStore, max: number, limit: ResultLimit = {}): EventsStoreItem[] {
    return this.#store.reading('events_store', eventsStore.name, () => this.#latest(eventsStore, max, limit))
  }

  #latest({ id, name, lastSequence }: OpenEventsStore, max: number, limit: ResultLimit): EventsStoreItem[] {
    const { latest, latestSizes } = this.#prepared()
    return fitting(latest, latestSizes, [id, 0, id, lastSequence, max], name, limit)
  }

  read(eventsStore: OpenEventsStore, options: ReadOptions): EventsStoreItem[] {
    const { fromSequence = 1, fromTimestamp, maxMessages, ...limit } = options
    const first = fromTimestamp === undefined ? fromSequence : this.firstSince(eventsStore, fromTimestamp)
    if (first === undefined || first > LAST_SEQUENCE) return []
    return this.from(eventsStore, first, maxMessages, limit)
  }

  /**
   * Returns the last entry of a key. Unlike the other reads, it may return an entry shortly before its sync, because
   * the entry that it replaces may already be removed.
   */
  lastOfKey({ id, name }: OpenEventsStore, key: string): StoredEvent | undefined {
    let before: number | undefined
    for (;;) {
      const sequence = this.#store.reading(
        'events_store',
        name,
        () => this.#prepared().lastOfKey.get(id, key)?.sequence,
      )
      if (sequence === undefined || sequence === before) return undefined
      const [item] = this.from({ id, name, lastSequence: sequence }, sequence, 1)
      if (item !== undefined) return item.event
      // A newer entry of the key was committed between the two statements, and this one was compacted away.
      before = sequence
    }
  }

  /** Returns whether an entry is the last one of its key, also if a newer one is about to be synced. */
  isLastOfKey({ id, name }: OpenEventsStore, key: string, sequence: number): boolean {
    return this.#store.reading(
      'events_store',
      name,
      () => this.#prepared().lastOfKey.get(id, key)?.sequence === sequence,
    )
  }

  /**
   * Returns the sequence of the first entry at or after a time. Timestamps never decrease within a channel, so a binary
   * search over the sequences needs at most some 40 look-ups, and appends need no index by time.
   */
  firstSince(eventsStore: OpenEventsStore, timestamp: number): number | undefined {
    return this.#store.reading('events_store', eventsStore.name, () => this.#firstSince(eventsStore, timestamp))
  }

  #firstSince({ id, lastSequence }: OpenEventsStore, timestamp: number): number | undefined {
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

/** Reads the entries that fit into one result. Their sizes are read first, so that no body is read in vain. */
function fitting(
  rows: Database.Statement<Range, ReadEntryRow>,
  sizes: Database.Statement<Range, { bytes: number }>,
  range: Range,
  channel: string,
  limit: ResultLimit,
): EventsStoreItem[] {
  const { maxBytes } = limit
  if (maxBytes === undefined) return rows.all(...range).map((row) => itemOf(row, channel))
  const found = sizes.all(...range)
  let bytes = 0
  const tooMany = found.findIndex((entry, i) => (bytes += entry.bytes) > maxBytes && i > 0)
  const [from, first, to, last] = range
  const result = new ResultSize(limit)
  if (found[0] !== undefined) result.mayFit(found[0].bytes)
  const items: EventsStoreItem[] = []
  for (const row of rows.all(from, first, to, last, tooMany < 0 ? found.length : tooMany)) {
    const item = itemOf(row, channel)
    if (!result.add(item.event, item.size)) return items
    items.push(item)
  }
  if (tooMany > 0) result.leaveOut()
  return items
}

function itemOf(row: ReadEntryRow, channel: string): EventsStoreItem {
  return { event: readEvent(row, channel), size: row.size }
}
