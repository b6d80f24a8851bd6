import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

/** The place in an events store where the delivery starts. */
export interface EventStart {
  readonly position: EventPosition
  /** `true` if entries after the cursor are gone: retention removed them, or the channel was deleted. */
  readonly truncated: boolean
}

/** The start of a channel: no entry is before it. */
const BEGINNING: EventPosition = { next: 1, mark: '' }

/** The positions in one events store. The caller's permission must have been checked. */
export class EventLog {
  readonly #system: BrokerHandle
  readonly #channel: string

  /** @param system The handle for reserved channels, which no policy restricts */
  constructor(system: BrokerHandle, channel: string) {
    this.#system = system
    this.#channel = channel
  }

  /** Returns the position after the last entry. */
  async end(): Promise<EventPosition> {
    const latest = await this.#latest()
    return latest === undefined ? BEGINNING : positionAfter(latest)
  }

  /** Returns the position before an entry, with the mark of the entry before that. */
  async at(next: number): Promise<EventPosition> {
    if (next === 1) return BEGINNING
    const before = await this.#from(next - 1)
    return { next, mark: before?.sequence === next - 1 ? markOf(before) : '' }
  }

  /**
   * Returns where a cursor continues. If entries after it are gone, that is the first stored one.
   * @param maxAgeMs Entries that are older are passed over
   */
  async resume(cursor: EventPosition, maxAgeMs?: number): Promise<EventStart> {
    const start = await this.#continued(cursor)
    if (maxAgeMs === undefined) return start
    const fromTimestamp = Math.max(Date.now() - maxAgeMs, 0)
    const [young] = await this.#system.eventsStore.read(this.#channel, { fromTimestamp, maxMessages: 1 })
    const position = young === undefined ? await this.end() : await this.at(young.sequence)
    return position.next > start.position.next ? { ...start, position } : start
  }

  async #continued(cursor: EventPosition): Promise<EventStart> {
    const before = Math.max(cursor.next - 1, 1)
    const first = await this.#from(before)
    if (first === undefined) {
      const latest = await this.#latest()
      // The sequences of a channel that was created again start at 1.
      const restarted = latest !== undefined && latest.sequence < before
      return restarted ? this.#first() : { position: cursor, truncated: false }
    }
    // With the entry before the cursor, a gap after it is one of a compacted store.
    if (first.sequence < cursor.next) {
      const same = cursor.mark === '' || cursor.mark === markOf(first)
      return same ? { position: cursor, truncated: false } : this.#first()
    }
    if (first.sequence === cursor.next) return { position: cursor, truncated: false }
    return { position: { next: first.sequence, mark: '' }, truncated: true }
  }

  async #first(): Promise<EventStart> {
    const first = await this.#from(1)
    return { position: { next: first?.sequence ?? 1, mark: '' }, truncated: true }
  }

  /** Returns `true` if the entry with a sequence, and all before it, were removed. */
  async hasLost(sequence: number): Promise<boolean> {
    const first = await this.#from(1)
    return first !== undefined && first.sequence > sequence
  }

  /** Returns the sequence of the last stored entry; 0 without one. */
  async lastSequence(): Promise<number> {
    try {
      const { eventsStore } = await this.#system.channels.info('events_store', this.#channel)
      return eventsStore?.lastSequence ?? 0
    } catch (error) {
      if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return 0
      throw error
    }
  }

  async #from(fromSequence: number): Promise<StoredEvent | undefined> {
    const [entry] = await this.#system.eventsStore.read(this.#channel, { fromSequence, maxMessages: 1 })
    return entry
  }

  async #latest(): Promise<StoredEvent | undefined> {
    const [entry] = await this.#system.eventsStore.readLatest(this.#channel, { maxMessages: 1 })
    return entry
  }
}

/**
 * A position in an events store. It contains no address of a node and no time, so each node continues it, also after
 * a restart.
 */
export interface EventPosition {
  /** The sequence of the next entry. */
  readonly next: number
  /** The mark of the entry before it; empty if that entry is not known. */
  readonly mark: string
}

const VERSION = '1'

/** The most characters of a cursor; the cursors of this server are much shorter. */
const MAX_CURSOR = 256

const MARK = /^[A-Za-z0-9_-]{0,11}$/
const DIGITS = /^[1-9][0-9]{0,15}$/

/** Returns a mark by which an entry is recognized. A channel that was created again has entries with other marks. */
function markOf({ id }: Pick<StoredEvent, 'id'>): string {
  return shortHash(id)
}

/** Returns the position after an entry. */
export function positionAfter(event: Pick<StoredEvent, 'id' | 'sequence'>): EventPosition {
  return { next: event.sequence + 1, mark: markOf(event) }
}

/** Returns a position as an opaque text that is valid for one channel. */
export function cursorOf(channel: string, { next, mark }: EventPosition): string {
  return Buffer.from(`${VERSION}.${next}.${mark}.${shortHash(channel)}`).toString('base64url')
}

/** Reads a cursor; returns `undefined` for another text, and for a cursor of another channel. */
export function readCursor(channel: string, cursor: string): EventPosition | undefined {
  if (cursor.length > MAX_CURSOR) return undefined
  const [version, next = '', mark = '', ofChannel, ...rest] = Buffer.from(cursor, 'base64url').toString().split('.')
  if (version !== VERSION || rest.length > 0 || ofChannel !== shortHash(channel)) return undefined
  const sequence = DIGITS.test(next) ? Number(next) : Number.NaN
  return Number.isSafeInteger(sequence) && MARK.test(mark) ? { next: sequence, mark } : undefined
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 11)
}
