import type { PeekOptions, QueueMessage, ResultLimit } from '@signalbox/broker-core/engine'
import { messageSize, ResultSize } from '@signalbox/broker-core/engine'

import type { LiveChannel } from '../channel-registry.ts'
import type { Store } from '../store/store.ts'
import type { QueueReader } from './queue-reader.ts'
import type { Queue } from './queue.ts'
import { isExpired } from './queue.ts'

/** The maximum number of messages read at once. */
const PAGE = 128

/** The time, and the maximum age of the queue's settings. */
interface ExpiryTimes {
  readonly now: number
  readonly maxAgeMs: number
}

/**
 * Returns the first messages of a queue, or from a sequence on, that are neither leased nor expired, from memory if
 * possible.
 * @param queue undefined if the queue has no data in memory
 */
export function peekQueue(
  reader: QueueReader,
  channel: LiveChannel,
  queue: Queue | undefined,
  { now, maxAgeMs }: ExpiryTimes,
  { maxMessages, fromSequence = 1, ...bound }: PeekOptions,
): QueueMessage[] {
  const known = fromSequence === 1 ? queue?.inMemory(maxMessages, now) : undefined
  if (known) return withinBytes(known, bound)
  const messages: QueueMessage[] = []
  const limit = Math.min(PAGE, maxMessages + (queue?.heldCount ?? 0))
  const result = new ResultSize(bound)
  for (let after = fromSequence - 1; ;) {
    const page = reader.page(channel, after, limit)
    for (const entry of page) {
      const { sequence, message, size } = entry
      after = sequence
      if (queue?.isHeld(sequence) || isExpired(entry, now, maxAgeMs)) continue
      if (!result.mayFit(size)) return messages
      const whole = message ?? reader.one(channel.id, channel.name, sequence)?.message
      if (!whole) continue
      if (!result.add(whole, size)) return messages
      if (messages.push(whole) === maxMessages) return messages
    }
    if (page.length < limit) return messages
  }
}

/** Returns when the first message that is neither leased nor expired was sent, without reading bodies. */
export function oldestWaiting(
  reader: QueueReader,
  channel: LiveChannel,
  queue: Queue | undefined,
  { now, maxAgeMs }: ExpiryTimes,
): number | undefined {
  const [known] = queue?.inMemory(1, now) ?? []
  if (known) return known.timestamp
  for (let after = 0; ;) {
    const page = reader.times(channel, after, PAGE)
    for (const [sequence, timestamp, expiresAt] of page) {
      after = sequence
      if (!queue?.isHeld(sequence) && !isExpired({ timestamp, expiresAt }, now, maxAgeMs)) return timestamp
    }
    if (page.length < PAGE) return undefined
  }
}

/** Returns the messages that fit into the result, at least one. */
function withinBytes(messages: QueueMessage[], limit: ResultLimit): QueueMessage[] {
  if (limit.maxBytes === undefined) return messages
  const result = new ResultSize(limit)
  const end = messages.findIndex((message) => !result.add(message, messageSize(message)))
  return end < 0 ? messages : messages.slice(0, end)
}

/** The number of messages that one operation removes: about 10 ms of work, after which other operations run. */
const STEP = 5_000

/**
 * Removes the messages of a queue up to a sequence, except leased ones; resolves with the number of removed messages.
 */
export async function purgeQueue(store: Store, queue: Queue, channelId: number, upTo: number): Promise<number> {
  // Delayed messages first: one that becomes due meanwhile is then removed with the others.
  const removed = await purgeRows(store, queue, channelId, upTo, true)
  return removed + (await purgeRows(store, queue, channelId, upTo, false))
}

async function purgeRows(
  store: Store,
  queue: Queue,
  channelId: number,
  upTo: number,
  delayed: boolean,
): Promise<number> {
  let removed = 0
  for (let after: number | undefined = 0; after !== undefined;) {
    const except = delayed ? [] : queue.heldSequences()
    const channel = queue.name
    const operation = { kind: 'purge', channel, channelId, delayed, after, upTo, limit: STEP, except } as const
    const step: { removed: number; next: number | undefined } = await store.submit(
      'purge',
      operation,
      0,
      (result) => result,
    )
    removed += step.removed
    after = step.next
  }
  return removed
}

/** The number of messages that one search for old ones reads. */
const AGED_STEP = 2_000
/** The longest time between two searches of a queue, in ms: messages that were delayed may be older than its first ones. */
const AGED_AGAIN_MS = 60_000

interface AgedSearch {
  /** The earliest time of the next search. */
  readonly at: number
  /** The sequence after which the next search begins. */
  readonly after: number
  /** The time from which searches begin at the first message again. */
  readonly restartAt: number
}

/**
 * Finds the messages that expired by the maximum age of their queue. A queue's messages are in the order of their times,
 * so a search ends at the first one that is young enough, and the queue is not read again before that one expires.
 */
export class AgedMessages {
  readonly #reader: QueueReader
  readonly #searches = new Map<string, AgedSearch>()

  constructor(reader: QueueReader) {
    this.#reader = reader
  }

  /** Returns the sequences of expired messages, also of leased ones. */
  find(channel: LiveChannel, now: number, maxAgeMs: number): number[] {
    const known = this.#searches.get(channel.name)
    const isCurrent = known !== undefined && now < known.restartAt && known.restartAt - now <= AGED_AGAIN_MS
    if (isCurrent && now < known.at) return []
    const restartAt = isCurrent ? known.restartAt : now + AGED_AGAIN_MS
    const from = isCurrent ? known.after : 0
    const page = this.#reader.times(channel, from, AGED_STEP)
    // A message that was sent with an expiration is found by that.
    const end = page.findIndex(([, timestamp, expiresAt]) => expiresAt === 0 && timestamp + maxAgeMs > now)
    const old = end === -1 ? page : page.slice(0, end)
    const [, firstYoung = now] = page[end] ?? []
    const at = end === -1 && page.length === AGED_STEP ? now : firstYoung + maxAgeMs
    this.#searches.set(channel.name, { at, after: old.at(-1)?.[0] ?? from, restartAt })
    return old.filter(([, , expiresAt]) => expiresAt === 0).map(([sequence]) => sequence)
  }

  /** Searches a queue from its first message again. @default every queue */
  forget(name?: string): void {
    if (name === undefined) this.#searches.clear()
    else this.#searches.delete(name)
  }
}
