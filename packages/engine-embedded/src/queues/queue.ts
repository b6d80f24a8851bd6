import type {
  GroupSettings,
  QueueDelivery,
  QueueMessage,
  ReceiveOptions,
  SettingsTable,
  Tags,
} from '@signalbox/broker-core/engine'
import { expiryOf, groupOf, maxAgeMsOf, ResultSize } from '@signalbox/broker-core/engine'
import { NumberMap, OrderedSet } from '@signalbox/broker-core/internal'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import type { QueuedMessage } from '../store/message-rows.ts'
import { GroupWindow } from './group-window.ts'
import type { HeldHeads } from './held-heads.ts'
import { MAX_BACKING_OFF } from './held-heads.ts'
import type { Lease, Leases } from './leases.ts'
import type { QueueReader } from './queue-reader.ts'
import { SMALL_BYTES } from './queue-reader.ts'
import { Window } from './window.ts'

/** The maximum number of a queue's messages in memory, leased ones not included. */
const MAX_WINDOW = 4_096
/** The number of messages read at once when the window is empty: about a millisecond of work. */
const PAGE = 256
/** The time after the last receive when a queue is removed from memory, in ms. */
const COLD_MS = 10_000

/** A receiver that waits for a message. */
export interface Waiter {
  readonly options: ReceiveOptions
  resolve(deliveries: QueueDelivery[]): void
  reject(error: unknown): void
}

interface QueueContext {
  readonly registry: ChannelRegistry
  readonly reader: QueueReader
  readonly leases: Leases<Queue>
  readonly settings: SettingsTable
  readonly heldHeads: HeldHeads<Queue>
  readonly now: () => number
  /** Returns whether each message of the queue has its group on disk. */
  indexed(channel: LiveChannel): boolean
  /** Reports that messages are not leased any more. */
  leaseEnded(queue: Queue): void
  /** Removes messages that were found past their expiry. */
  expire(queue: Queue, sequences: number[]): void
}

/**
 * The part of one queue that is in memory: the next messages (the window), leased messages, and waiting receivers. All
 * other messages are on disk and are read in pages when the window is empty, so that memory does not grow with the
 * queue.
 *
 * Invariant: every deliverable message up to `#pagedTo` is in the window or held. If `#complete` is set, no deliverable
 * message exists after it, except those that later results report.
 */
export class Queue {
  readonly name: string
  readonly #context: QueueContext
  readonly #window = new Window()
  /** The next groups instead of the window; undefined if the queue has no groups. */
  #groups: GroupWindow | undefined
  /** `true` if the last call of {@link take} did not read all groups. */
  searching = false
  /** Messages that are leased or being settled: on disk, but not deliverable. */
  readonly #held = new NumberMap<QueuedMessage>()
  /** Those of the held messages that are not leased, but wait for the end of a backoff. */
  readonly #backingOff = new NumberMap<QueuedMessage>()
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

  /** `true` if the queue has no data in memory that is not on disk. */
  get idle(): boolean {
    return this.waiters.size === 0 && this.#held.size === 0 && this.#paused === 0
  }

  get cold(): boolean {
    return this.waiters.size === 0 && performance.now() - this.#lastReceive > COLD_MS
  }

  /** The age at which messages without an expiration expire, in ms; 0 means never. Read again for each use. */
  get maxAgeMs(): number {
    return maxAgeMsOf(this.#context.settings, this.name)
  }

  /** `true` if messages are delivered by groups, so that the end of a lease may make another message deliverable. */
  get grouped(): boolean {
    return this.#groups !== undefined
  }

  heldSequences(): number[] {
    return this.#held.keys()
  }

  get heldCount(): number {
    return this.#held.size
  }

  /** The number of leased messages, those that are being settled included. */
  get leasedCount(): number {
    return this.#held.size - this.#backingOff.size
  }

  isHeld(sequence: number): boolean {
    return this.#held.has(sequence)
  }

  /**
   * Returns whether this delivery is unsettled. False after its channel was deleted, even if a new message has its
   * sequence.
   */
  holds(entry: QueuedMessage): boolean {
    return this.#held.get(entry.sequence) === entry
  }

  // ── Leasing messages ──

  /** Leases the messages that are available now. */
  take(options: ReceiveOptions): Lease<Queue>[] {
    this.#lastReceive = performance.now()
    const channel = this.channel
    if (!channel || this.#paused > 0) return []
    const leases: Lease<Queue>[] = []
    const expired: number[] = []
    const { settings } = this.#context
    const groups = settings.active ? settings.of('queues', this.name).groups : undefined
    try {
      if (groups) this.#takeFromGroups(leases, expired, channel, options, groups)
      else this.#takeInto(leases, expired, channel, options)
    } catch (error) {
      // If the disk cannot be read further, return the messages that are leased already.
      if (leases.length === 0) throw error
    } finally {
      if (leases.length > 0) this.#countHeld()
      if (expired.length > 0) this.#context.expire(this, expired)
    }
    return leases
  }

  #takeInto(leases: Lease<Queue>[], expired: number[], channel: LiveChannel, options: ReceiveOptions): void {
    if (this.#groups) this.#endGroups()
    const { maxMessages, leaseMs, clientId } = options
    const now = this.#context.now()
    const { maxAgeMs } = this
    const result = new ResultSize(options)
    while (leases.length < maxMessages) {
      const entry = this.#window.first ?? this.#nextPage(channel)
      if (!entry) return
      if (!isExpired(entry, now, maxAgeMs) && !result.mayFit(entry.size)) return
      const message = this.#load(channel, entry)
      if (!message || isExpired(entry, now, maxAgeMs)) {
        this.#window.shift()
        if (message) expired.push(entry.sequence)
        continue
      }
      if (!result.add(message, entry.size)) {
        this.#forgetLarge(entry)
        return
      }
      this.#window.shift()
      entry.receiveCount++
      this.#held.set(entry.sequence, entry)
      leases.push(this.#context.leases.grant(this, entry, clientId, leaseMs))
    }
  }

  #takeFromGroups(
    leases: Lease<Queue>[],
    expired: number[],
    channel: LiveChannel,
    options: ReceiveOptions,
    settings: GroupSettings,
  ): void {
    this.searching = false
    if (!this.#context.indexed(channel) || this.#backingOff.size >= MAX_BACKING_OFF) return
    const groups = (this.#groups ??= this.#group(channel))
    const now = this.#context.now()
    const result = new ResultSize(options)
    while (leases.length < options.maxMessages) {
      const next = groups.next(channel, settings)
      if (!next) {
        this.searching = groups.searching
        return
      }
      const [entry] = this.#context.reader.page(channel, next.sequence - 1, 1)
      if (entry?.sequence !== next.sequence || isExpired(entry, now, this.maxAgeMs)) {
        groups.leave(next.group, next.sequence)
        expired.push(next.sequence)
        continue
      }
      // A large body is not read for a receiver that may not have it.
      if (!result.mayFit(entry.size)) return
      const message = this.#load(channel, entry)
      if (!message || !result.add(message, entry.size)) return
      entry.receiveCount++
      this.#held.set(entry.sequence, entry)
      groups.delivered(next.group, next.sequence)
      leases.push(this.#context.leases.grant(this, entry, options.clientId, options.leaseMs))
    }
  }

  /** Begins to deliver by groups, which the messages that are held already have too. */
  #group(channel: LiveChannel): GroupWindow {
    const groups = new GroupWindow(this.#context.reader)
    for (const { sequence, message } of this.#held.values()) {
      const group = message ? groupOf(message.tags) : this.#context.reader.groupOfMessage(channel, sequence)
      if (group !== undefined) groups.hold(group, sequence)
    }
    this.forgetWindow()
    return groups
  }

  #endGroups(): void {
    this.#groups = undefined
    this.searching = false
    this.forgetWindow()
  }

  /** Returns the deliveries of new leases, and counts them as delivered. */
  deliver(leases: readonly Lease<Queue>[]): QueueDelivery[] {
    const channel = this.channel
    const deliveries: QueueDelivery[] = []
    let bytes = 0
    for (const { receipt, entry } of leases) {
      const { message, receiveCount } = entry
      if (!message) continue
      if (receiveCount > 1) this.#context.registry.sinceOpen.redelivered++
      bytes += entry.size
      deliveries.push({ receipt, message: withReceiveCount(message, receiveCount) })
      this.#forgetLarge(entry)
    }
    if (channel) this.#context.registry.delivered(channel, deliveries.length, bytes)
    return deliveries
  }

  /** Keeps a message in memory only if it is small. Otherwise it is read again at its next delivery. */
  #forgetLarge(entry: QueuedMessage): void {
    if (entry.size > SMALL_BYTES) entry.message = undefined
  }

  #load(channel: LiveChannel, entry: QueuedMessage): QueueMessage | undefined {
    if (entry.message) return entry.message
    const read = this.#context.reader.one(channel.id, this.name, entry.sequence)
    if (!read) return undefined
    const { receiveCount, ...rest } = read
    Object.assign(entry, rest, { receiveCount: Math.max(entry.receiveCount, receiveCount) })
    return entry.message
  }

  #nextPage(channel: LiveChannel): QueuedMessage | undefined {
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

  /** Returns the first `count` deliverable messages if they are in memory; undefined if they must be read from disk. */
  inMemory(count: number, now: number): QueueMessage[] | undefined {
    if (this.#paused > 0 || this.#groups) return undefined
    const { maxAgeMs } = this
    const messages: QueueMessage[] = []
    for (const entry of this.#window) {
      if (isExpired(entry, now, maxAgeMs)) continue
      const { message, receiveCount } = entry
      if (!message) return undefined
      if (messages.push(withReceiveCount(message, receiveCount)) === count) return messages
    }
    return this.#complete ? messages : undefined
  }

  // ── Putting messages in ──

  /**
   * Adds a message that was stored, became due, or came from another queue.
   * @param tags The message's tags; undefined if they must be read from disk
   */
  arrived(entry: QueuedMessage, tags?: Tags): void {
    if (this.#held.has(entry.sequence) || this.#paused > 0) return
    if (this.#groups) this.#arrivedInGroup(this.#groups, entry.sequence, tags)
    else if (this.cold && entry.sequence > this.#pagedTo) this.#complete = false
    else this.#place(entry)
  }

  #arrivedInGroup(groups: GroupWindow, sequence: number, tags: Tags | undefined): void {
    const group = tags ? groupOf(tags) : this.#storedGroup(sequence)
    if (group === undefined) groups.forget()
    else groups.arrived(group, sequence)
  }

  /** Returns the group of a message on disk; undefined if it cannot be read. */
  #storedGroup(sequence: number): string | undefined {
    try {
      return this.channel && this.#context.reader.groupOfMessage(this.channel, sequence)
    } catch {
      // The damage was recorded.
      return undefined
    }
  }

  #place(entry: QueuedMessage): void {
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

  /** Returns held messages to their positions. */
  returnHeld(entries: readonly QueuedMessage[]): void {
    for (const entry of entries) {
      if (!this.#held.delete(entry.sequence)) continue
      this.#backingOff.delete(entry.sequence)
      if (this.#groups) this.#groups.returned(entry.sequence)
      else if (this.#paused === 0) this.#place(entry)
    }
    this.#leasesEnded()
  }

  /**
   * Returns whether a held message must stay at its position while it backs off: it has a group, whose next messages
   * must not overtake it.
   */
  keepsOrder({ sequence }: QueuedMessage): boolean {
    const { mode } = this.#context.settings.of('queues', this.name).groups ?? {}
    return mode === 'ordered' && (this.#groups?.groupOf(sequence) ?? '') !== ''
  }

  /**
   * Keeps held messages, whose leases have ended, at their positions until a time in ms since the epoch. Call it instead
   * of {@link returnHeld}.
   */
  backOff(entries: readonly QueuedMessage[], dueAt: number): void {
    const held = entries.filter((entry) => this.holds(entry))
    for (const entry of held) this.#backingOff.set(entry.sequence, entry)
    this.#leasesEnded()
    this.#context.heldHeads.add(this, held, dueAt)
  }

  /** Ends the backoff of messages; returns those that still exist, to be returned. */
  endBackOff(entries: readonly QueuedMessage[]): QueuedMessage[] {
    return entries.filter((entry) => {
      const exists = this.#backingOff.get(entry.sequence) === entry
      return exists && this.#backingOff.delete(entry.sequence)
    })
  }

  /** Removes held messages that left this queue. */
  removeHeld(sequences: Iterable<number>): void {
    for (const sequence of sequences) {
      this.#held.delete(sequence)
      this.#backingOff.delete(sequence)
      this.#groups?.removed(sequence)
    }
    this.#leasesEnded()
  }

  #countHeld(): void {
    const channel = this.channel
    if (channel) this.#context.registry.setHeld(channel, this.#held.size, this.#backingOff.size)
  }

  #leasesEnded(): void {
    this.#countHeld()
    this.#context.leaseEnded(this)
  }

  /** Removes a message from the window because it was removed from disk, or is about to be. */
  withdraw(sequence: number): void {
    if (this.#groups) this.#groups.leave(this.#storedGroup(sequence) ?? '', sequence)
    else this.#window.remove(sequence)
  }

  /**
   * Stops deliveries until {@link resume}, because messages of the window may be removed. Messages that back off are no
   * longer held, so that they can be removed too.
   */
  pause(): void {
    this.#paused++
    this.returnHeld(this.#backingOff.values())
    this.forgetWindow()
  }

  resume(): void {
    this.#paused--
    this.forgetWindow()
  }

  /** Clears the window, so that messages are read from disk again. */
  forgetWindow(): void {
    this.#window.clear()
    this.#pagedTo = 0
    this.#complete = false
    this.#groups?.forget()
  }

  /** Resets the queue after its channel was deleted. */
  reset(): void {
    this.#held.clear()
    this.#backingOff.clear()
    this.#groups = undefined
    this.forgetWindow()
    this.#context.leaseEnded(this)
  }
}

/** @param maxAgeMs The maximum age of the queue's settings; 0 means none */
export function isExpired(
  entry: { readonly timestamp: number; readonly expiresAt: number },
  now: number,
  maxAgeMs: number,
): boolean {
  const expiresAt = expiryOf(entry, maxAgeMs)
  return expiresAt > 0 && expiresAt <= now
}

function withReceiveCount(message: QueueMessage, receiveCount: number): QueueMessage {
  return message.receiveCount === receiveCount ? message : { ...message, receiveCount }
}
