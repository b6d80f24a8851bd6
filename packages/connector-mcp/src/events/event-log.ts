import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

import type { EventPosition } from './event-cursor.ts'
import { markOf, positionAfter } from './event-cursor.ts'

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
