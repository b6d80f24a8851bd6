import { NumberMap, OrderedSet } from '@signalbox/broker-core/internal'
import type { QueueDelivery, QueueMessage, ReceiveOptions } from '@signalbox/broker-core/engine'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import type { Lease, Leases } from './leases.ts'
import type { QueueReader } from './queue-reader.ts'
import { SMALL_BYTES } from './queue-reader.ts'
import type { WindowEntry } from './window.ts'
import { Window } from './window.ts'

/** The most messages of a queue that are known in memory, leased ones not counted. */
const MAX_WINDOW = 4_096
/** Messages read at once when the window is empty: about a millisecond. */
const PAGE = 256
/** A queue that nobody received from for this long keeps nothing in memory. */
const COLD_MS = 10_000

/** A receiver that waits for a message. */
export interface Waiter {
  readonly options: ReceiveOptions
  resolve(deliveries: QueueDelivery[]): void
  reject(error: unknown): void
}

export interface QueueContext {
  readonly registry: ChannelRegistry
  readonly reader: QueueReader
  readonly leases: Leases<Queue>
  readonly now: () => number
  /** Messages that were found past their expiry; to be removed for good. */
  expire(queue: Queue, sequences: number[]): void
}

/**
 * What is kept in memory of one queue: the next messages (the window), those on lease, and who waits. The rest stays
 * on disk and is read in pages when the window runs empty, so that memory does not grow with the queue.
 *
 * What is true at any time: every deliverable message up to `#pagedTo` is in the window or held; beyond it the window
 * knows nothing, unless `#complete`, and then there is nothing beyond it but what later results will tell.
 */
export class Queue {
  readonly name: string
  readonly #context: QueueContext
  readonly #window = new Window()
  /** On lease, or being settled: on disk, but not to be given out. */
  readonly #held = new NumberMap<WindowEntry>()
  readonly waiters = new OrderedSet<Waiter>()
  #pagedTo = 0
  #complete = false
  #paused = 0
  #lastReceive = -Infinity

  constructor(name: string, context: QueueContext) {
    this.name = name
    this.#context = context
  }

  get channel(): LiveChannel | undefined {
    return this.#context.registry.get('queues', this.name)
  }

  /** Nothing here but what the disk has too. */
  get idle(): boolean {
    return this.waiters.size === 0 && this.#held.size === 0 && this.#paused === 0
  }

  get cold(): boolean {
    return this.waiters.size === 0 && performance.now() - this.#lastReceive > COLD_MS
  }

  heldSequences(): number[] {
    return this.#held.keys()
  }

  get heldCount(): number {
    return this.#held.size
  }

  isHeld(sequence: number): boolean {
    return this.#held.has(sequence)
  }

  /** Whether this very delivery is still out; not after its channel was deleted, though another has its sequence. */
  holds(entry: WindowEntry): boolean {
    return this.#held.get(entry.sequence) === entry
  }

  // ── Taking messages out ──

  /** Leases what can be had now. */
  take(options: ReceiveOptions): Lease<Queue>[] {
    this.#lastReceive = performance.now()
    const channel = this.channel
    if (!channel || this.#paused > 0) return []
    const leases: Lease<Queue>[] = []
    const expired: number[] = []
    try {
      this.#takeInto(leases, expired, channel, options)
    } catch (error) {
      // The disk could not be read on; what is leased already is given.
      if (leases.length === 0) throw error
    } finally {
      if (leases.length > 0) this.#context.registry.setInFlight(channel, this.#held.size)
      if (expired.length > 0) this.#context.expire(this, expired)
    }
    return leases
  }

  #takeInto(leases: Lease<Queue>[], expired: number[], channel: LiveChannel, options: ReceiveOptions): void {
    const { maxMessages, maxBytes, leaseMs, clientId } = options
    const now = this.#context.now()
    let bytes = 0
    while (leases.length < maxMessages) {
      const entry = this.#window.first ?? this.#nextPage(channel)
      if (!entry) return
      const message = this.#load(channel, entry)
      if (!message || isExpired(entry.expiresAt, now)) {
        this.#window.shift()
        if (message) expired.push(entry.sequence)
        continue
      }
      bytes += entry.size
      if (maxBytes !== undefined && leases.length > 0 && bytes > maxBytes) return
      this.#window.shift()
      entry.receiveCount++
      this.#held.set(entry.sequence, entry)
      leases.push(this.#context.leases.grant(this, entry, clientId, leaseMs))
    }
  }

  /** The deliveries of leases just taken, counted as delivered. */
  deliver(leases: readonly Lease<Queue>[]): QueueDelivery[] {
    const channel = this.channel
    const deliveries: QueueDelivery[] = []
    let bytes = 0
    for (const { receipt, entry } of leases) {
      const { message, receiveCount } = entry
      if (!message) continue
      bytes += entry.size
      deliveries.push({ receipt, message: withReceiveCount(message, receiveCount) })
      // Kept only while it is cheap; a message that comes back is read again.
      if (entry.size > SMALL_BYTES) entry.message = undefined
    }
    if (channel) this.#context.registry.delivered(channel, deliveries.length, bytes)
    return deliveries
  }

  #load(channel: LiveChannel, entry: WindowEntry): QueueMessage | undefined {
    if (entry.message) return entry.message
    const read = this.#context.reader.one(channel.id, this.name, entry.sequence)
    if (!read) return undefined
    const { receiveCount, ...rest } = read
    Object.assign(entry, rest, { receiveCount: Math.max(entry.receiveCount, receiveCount) })
    return entry.message
  }

  #nextPage(channel: LiveChannel): WindowEntry | undefined {
    while (!this.#complete) {
      const page = this.#context.reader.page(channel, this.#pagedTo, PAGE)
      this.#complete = page.length < PAGE
      for (const entry of page) {
        this.#pagedTo = entry.sequence
        if (!this.#held.has(entry.sequence)) this.#window.add(entry)
      }
      if (this.#window.first) return this.#window.first
    }
    return undefined
  }

  /** The first `count` deliverable messages, if they are in memory; undefined when the disk must be asked. */
  inMemory(count: number, now: number): QueueMessage[] | undefined {
    if (this.#paused > 0) return undefined
    const messages: QueueMessage[] = []
    for (const { message, receiveCount, expiresAt } of this.#window) {
      if (isExpired(expiresAt, now)) continue
      if (!message) return undefined
      if (messages.push(withReceiveCount(message, receiveCount)) === count) return messages
    }
    return this.#complete ? messages : undefined
  }

  // ── Putting messages in ──

  /** A message that was just stored, or has become due, or came from another queue. */
  arrived(entry: WindowEntry): void {
    if (this.#held.has(entry.sequence) || this.#paused > 0) return
    if (this.cold && entry.sequence > this.#pagedTo) this.#complete = false
    else this.#place(entry)
  }

  #place(entry: WindowEntry): void {
    if (entry.sequence > this.#pagedTo) {
      if (!this.#complete) return
      this.#pagedTo = entry.sequence
    }
    this.#window.add(entry)
    if (this.#window.length > MAX_WINDOW + PAGE) {
      this.#pagedTo = this.#window.truncate(MAX_WINDOW)
      this.#complete = false
    }
  }

  /** Gives held messages back to their places. */
  giveBack(entries: readonly WindowEntry[]): void {
    for (const entry of entries) {
      if (!this.#held.delete(entry.sequence)) continue
      if (this.#paused === 0) this.#place(entry)
    }
    this.#countHeld()
  }

  /** Held messages are gone from this queue. */
  letGo(sequences: Iterable<number>): void {
    for (const sequence of sequences) this.#held.delete(sequence)
    this.#countHeld()
  }

  #countHeld(): void {
    const channel = this.channel
    if (channel) this.#context.registry.setInFlight(channel, this.#held.size)
  }

  /** Messages of the window are gone from the disk, or about to. */
  withdraw(sequence: number): void {
    this.#window.remove(sequence)
  }

  /** Gives out nothing until {@link resume}: what is in the window may be gone. */
  pause(): void {
    this.#paused++
    this.forgetWindow()
  }

  resume(): void {
    this.#paused--
    this.forgetWindow()
  }

  /** Reads from disk again. */
  forgetWindow(): void {
    this.#window.clear()
    this.#pagedTo = 0
    this.#complete = false
  }

  /** The channel is gone, with all it held. */
  reset(): void {
    this.#held.clear()
    this.forgetWindow()
  }
}

export function isExpired(expiresAt: number, now: number): boolean {
  return expiresAt > 0 && expiresAt <= now
}

function withReceiveCount(message: QueueMessage, receiveCount: number): QueueMessage {
  if (message.receiveCount === receiveCount) return message
  const { id, clientId, body, metadata, tags, channel, timestamp, sequence } = message
  const { expiresAt, maxReceiveCount, deadLetterQueue } = message
  return {
    id,
    clientId,
    body,
    metadata,
    tags,
    channel,
    timestamp,
    sequence,
    receiveCount,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
  }
}
