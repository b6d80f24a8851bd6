import type {
  EventsStoreStart,
  LatestOptions,
  ReadOptions,
  ResultLimit,
  StoredEvent,
} from '@signalbox/broker-core/engine'
import { decodeEntry, messageSize, ResultSize, toStoredEvent } from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { API, isApiError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import type { StoredMessage } from '../stored-messages.ts'

interface EventsStoreCounts {
  /** 0 when the store is empty. */
  readonly firstSequence: number
  readonly lastSequence: number
  /** The last sequence that was ever assigned; it does not fall when entries are removed. */
  readonly lastEver: number
  readonly entries: number
  readonly bytes: number
  readonly lastStoredAt: number
}

/** Reads the entries of events stores. */
export class EventsStoreReader {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async counts(channel: StoredChannel): Promise<EventsStoreCounts> {
    const { connection } = this.#parts
    const { state } = await connection.call(
      () => connection.manager.streams.info(channel.stream),
      (error) => (isApiError(error, API.STREAM_NOT_FOUND) ? error : undefined),
    )
    const { messages: entries, bytes, first_seq: first, last_seq: lastEver, last_ts: lastAt } = state
    return {
      firstSequence: entries === 0 ? 0 : first,
      lastSequence: entries === 0 ? 0 : lastEver,
      lastEver,
      entries,
      bytes,
      lastStoredAt: lastEver === 0 ? 0 : Date.parse(lastAt),
    }
  }

  async read(channel: StoredChannel, options: ReadOptions): Promise<readonly StoredEvent[]> {
    const { maxMessages, fromSequence, fromTimestamp, ...limit } = options
    const { firstSequence, lastSequence, entries, bytes } = await this.counts(channel)
    if (entries === 0) return []
    // The size of an entry is known only when it has arrived.
    new ResultSize(limit).mayFit(bytes / entries)
    const filter = this.#parts.subjects.all(channel.incarnation)
    const from =
      fromTimestamp === undefined
        ? Math.max(fromSequence ?? 1, firstSequence)
        : await this.#parts.messages.sequenceAt(channel.stream, filter, fromTimestamp, firstSequence, lastSequence)
    const page = new Page(channel.name, maxMessages, limit, lastSequence)
    await this.#parts.messages.forward(channel.stream, filter, from, lastSequence, maxMessages, page.take)
    return page.entries
  }

  async readLatest(channel: StoredChannel, { maxMessages, ...limit }: LatestOptions): Promise<readonly StoredEvent[]> {
    const { firstSequence, lastSequence, entries, bytes } = await this.counts(channel)
    if (entries === 0) return []
    new ResultSize(limit).mayFit(bytes / entries)
    const page = new Page(channel.name, Math.min(maxMessages, entries), limit, firstSequence)
    await this.#parts.messages.backward(channel.stream, lastSequence, firstSequence, maxMessages, page.take)
    return page.entries
  }

  async last(channel: StoredChannel, key: string): Promise<StoredEvent | undefined> {
    const subject = this.#parts.subjects.keyed(channel.incarnation, key)
    const message = await this.#parts.messages.get(channel.stream, { last_by_subj: subject })
    return message && storedEventOf(channel.name, message)
  }

  /** Returns the last entry with this key: its sequence, and the hash of its deduplication id. */
  async lastWithOrigin(
    channel: StoredChannel,
    key: string,
  ): Promise<{ sequence: number; origin: string | undefined } | undefined> {
    const subject = this.#parts.subjects.keyed(channel.incarnation, key)
    const message = await this.#parts.messages.get(channel.stream, { last_by_subj: subject })
    const entry = message && decodeEntry(message.data)
    return entry && { sequence: message.sequence, origin: entry.origin }
  }

  /** Returns the first sequence that a subscription delivers. */
  async startOf(channel: StoredChannel, start: EventsStoreStart): Promise<number> {
    if (start.from === 'first') return 1
    if (start.from === 'sequence') return Math.max(1, start.sequence)
    const { lastSequence, lastEver, firstSequence, entries } = await this.counts(channel)
    if (start.from === 'new') return lastEver + 1
    // An empty store has no last entry: the next one is the first.
    if (start.from === 'last') return entries === 0 ? lastEver + 1 : lastSequence
    if (entries === 0) return lastEver + 1
    const time = start.from === 'time' ? start.timestamp : Date.now() - start.milliseconds
    const filter = this.#parts.subjects.all(channel.incarnation)
    return this.#parts.messages.sequenceAt(channel.stream, filter, time, firstSequence, lastSequence)
  }
}

/** The entries of one answer. */
class Page {
  readonly entries: StoredEvent[] = []
  readonly #channel: string
  readonly #maxMessages: number
  readonly #result: ResultSize
  readonly #end: number

  /** @param end The sequence at which reading ends */
  constructor(channel: string, maxMessages: number, limit: ResultLimit, end: number) {
    this.#channel = channel
    this.#maxMessages = maxMessages
    this.#result = new ResultSize(limit)
    this.#end = end
  }

  readonly take = (message: Omit<StoredMessage, 'subject'>): boolean => {
    const entry = storedEventOf(this.#channel, message)
    if (!entry) return true
    if (!this.#result.add(entry, messageSize(entry))) return false
    this.entries.push(entry)
    if (this.entries.length === this.#maxMessages) return false
    if (!this.#result.isFull) return true
    if (entry.sequence !== this.#end) this.#result.leaveOut()
    return false
  }
}

/** Returns a stored entry; undefined for data that no node of this broker stored. */
export function storedEventOf(
  channel: string,
  { data, sequence, timestamp }: Omit<StoredMessage, 'subject'>,
): StoredEvent | undefined {
  const entry = decodeEntry(data)
  if (!entry) return undefined
  const { message, key, tombstone } = entry
  return toStoredEvent(message, { channel, timestamp, sequence, key, tombstone: tombstone || undefined })
}
