import type { EncodedQueueMessage } from '@signalbox/broker-core/engine'
import { maxAgeMsOf } from '@signalbox/broker-core/engine'
import type { StreamState } from '@nats-io/jetstream'

import { MAX_TIMER_MS } from '@signalbox/broker-core/internal'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { API, isApiError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { reportFailure } from '../problems.ts'
import type { StoredMessage } from '../stored-messages.ts'
import { consumerOf, PARTITIONS } from '../streams.ts'
import { partitionOf, TIME_GRAIN_MS, timesOf } from '../subjects.ts'

interface QueueCounts {
  /** Without expired messages. */
  readonly messages: number
  readonly delayed: number
  /** Messages that are expired and still stored. */
  readonly expired: number
  readonly bytes: number
  readonly lastSequence: number
  readonly lastStoredAt: number
  /** The time of the first stored message, delayed and leased ones included; 0 if there is none. */
  readonly firstStoredAt: number
}

/** The maximum age of a count that only guards a generous limit, in milliseconds. */
const ABOUT_MS = 2_000
const MAX_SWEEP_WAIT_MS = 60 * 60_000
const PARALLEL = 64
/** The pause after a failure, in milliseconds. */
const AGAIN_MS = 5_000
/** The pause before a node with a wrong clock checks again, in milliseconds. */
const SKEWED_MS = 5_000

/** Counts the messages of queues by their subjects, and removes expired ones. */
export class QueueGauges {
  readonly #parts: Parts
  readonly #about = new Map<string, { delayed: number; readAt: number }>()
  readonly #sweeps = new Map<string, { at: number; readonly timer: NodeJS.Timeout }>()
  /** The messages that this node returned with a delay, by the incarnations of their queues. */
  readonly #retries = new Map<string, Set<NodeJS.Timeout>>()
  readonly #expire: (channel: StoredChannel, message: StoredMessage) => Promise<boolean>
  #closed = false

  /** @param expire Ends an expired message; resolves with false if another node has ended it, or if it must stay */
  constructor(parts: Parts, expire: (channel: StoredChannel, message: StoredMessage) => Promise<boolean>) {
    this.#parts = parts
    this.#expire = expire
  }

  /** Plans the removal of messages that expire by the maximum age of their queue. */
  seen(channel: StoredChannel, { messages, first_ts: firstAt }: StreamState): void {
    const maxAgeMs = maxAgeMsOf(this.#parts.channelSettings, channel.name)
    if (maxAgeMs > 0 && messages > 0) this.#sweepAt(channel, Date.parse(firstAt) + maxAgeMs)
  }

  async read(channel: StoredChannel): Promise<QueueCounts> {
    const { connection, subjects } = this.#parts
    const filter = subjects.all(channel.incarnation)
    const info = await connection.call(
      () => connection.manager.streams.info(channel.stream, { subjects_filter: filter }),
      (error) => (isApiError(error, API.STREAM_NOT_FOUND) ? error : undefined),
    )
    const now = this.#parts.clock.now()
    let [delayed, expired, nextExpiry] = [0, 0, Infinity]
    for (const [subject, count] of Object.entries(info.state.subjects ?? {})) {
      const { dueAt, expiresAt } = timesOf(subject)
      if (expiresAt > 0 && expiresAt <= now) expired += count
      // Times in subjects are rounded up, so a message may be due slightly before.
      else if (dueAt - TIME_GRAIN_MS > now) delayed += count
      if (expiresAt > 0) nextExpiry = Math.min(nextExpiry, expiresAt)
    }
    if (nextExpiry < Infinity) this.#sweepAt(channel, nextExpiry)
    this.seen(channel, info.state)
    this.#about.set(channel.incarnation, { delayed, readAt: Date.now() })
    const { messages, bytes, last_seq: lastSequence, last_ts: lastAt, first_ts: firstAt } = info.state
    const lastStoredAt = lastSequence === 0 ? 0 : Date.parse(lastAt)
    const firstStoredAt = messages === 0 ? 0 : Date.parse(firstAt)
    return { messages: messages - expired, delayed, expired, bytes, lastSequence, lastStoredAt, firstStoredAt }
  }

  /** Returns the number of delayed messages, at most some seconds old. */
  async delayedAbout(channel: StoredChannel): Promise<number> {
    const known = this.#about.get(channel.incarnation)
    if (known && Date.now() - known.readAt < ABOUT_MS) return known.delayed
    return (await this.read(channel)).delayed
  }

  sent(channel: StoredChannel, { dueAt, expiresAt }: EncodedQueueMessage): void {
    const about = this.#about.get(channel.incarnation)
    if (about && dueAt > 0) about.delayed++
    const maxAgeMs = expiresAt > 0 ? 0 : maxAgeMsOf(this.#parts.channelSettings, channel.name)
    if (expiresAt > 0) this.#sweepAt(channel, Math.ceil(expiresAt / TIME_GRAIN_MS) * TIME_GRAIN_MS)
    else if (maxAgeMs > 0) this.#sweepAt(channel, Date.now() + maxAgeMs)
  }

  #sweepAt(channel: StoredChannel, time: number): void {
    const planned = this.#sweeps.get(channel.incarnation)
    if (this.#closed || (planned && planned.at <= time)) return
    clearTimeout(planned?.timer)
    const delay = Math.min(MAX_SWEEP_WAIT_MS, Math.max(this.#parts.clock.isSkewed ? SKEWED_MS : 20, time - Date.now()))
    const timer = setTimeout(() => {
      this.#sweeps.delete(channel.incarnation)
      if (this.#parts.storedChannels.get('queues', channel.name)?.incarnation !== channel.incarnation) return
      this.sweep(channel).catch((error: unknown) => {
        reportFailure(this.#parts.settings.onProblem, 'removing expired messages', error)
        this.#sweepAt(channel, Date.now() + AGAIN_MS)
      })
    }, delay)
    timer.unref()
    this.#sweeps.set(channel.incarnation, { at: time, timer })
  }

  /**
   * Removes expired messages that are not leased. Resolves with their number. A leased message is left to
   * its lease.
   */
  async sweep(channel: StoredChannel): Promise<number> {
    const { connection, clock, subjects, channelSettings } = this.#parts
    if (clock.isSkewed) {
      this.#sweepAt(channel, Date.now() + SKEWED_MS)
      return 0
    }
    const { manager } = connection
    const filter = subjects.all(channel.incarnation)
    const info = await connection.call(() => manager.streams.info(channel.stream, { subjects_filter: filter }))
    const expired: string[] = []
    let next = Infinity
    for (const subject of Object.keys(info.state.subjects ?? {})) {
      const { expiresAt } = timesOf(subject)
      if (expiresAt === 0) continue
      if (expiresAt <= Date.now()) expired.push(subject)
      else next = Math.min(next, expiresAt)
    }
    const maxAgeMs = maxAgeMsOf(channelSettings, channel.name)
    const { messages, first_ts: firstAt } = info.state
    const agesAt = maxAgeMs === 0 || messages === 0 ? Infinity : Date.parse(firstAt) + maxAgeMs
    let removed = 0
    if (expired.length > 0 || agesAt <= Date.now()) {
      const leased = await this.#isLeased(channel)
      const after = async (subject: string): Promise<number> => (leased ? this.#lastDelivered(channel, subject) : 0)
      for (const subject of expired) {
        removed += (await this.#sweepSubject(channel, subject, await after(subject))).removed
      }
      for (const filter of agesAt <= Date.now() ? this.#withoutExpiry(channel) : []) {
        const { removed: aged, firstKept } = await this.#sweepSubject(channel, filter, await after(filter), maxAgeMs)
        removed += aged
        next = Math.min(next, firstKept + maxAgeMs)
      }
      if (leased) next = Math.min(next, Date.now() + 1_000)
    } else {
      next = Math.min(next, agesAt)
    }
    if (next < Infinity) this.#sweepAt(channel, next)
    return removed
  }

  /** Returns the filters for the messages that were sent without an expiry, one for each consumer of the queue. */
  #withoutExpiry({ incarnation, name }: StoredChannel): readonly string[] {
    const { channelSettings, subjects } = this.#parts
    const partitions = channelSettings.of('queues', name).groups ? PARTITIONS : []
    return [undefined, ...partitions].map((partition) => subjects.withoutExpiry(incarnation, partition))
  }

  /** Returns the highest sequence that the consumer of a subject has delivered. */
  async #lastDelivered({ stream }: StoredChannel, subject: string): Promise<number> {
    const { connection } = this.#parts
    const consumer = consumerOf(partitionOf(subject))
    const info = await connection.call(() => connection.manager.consumers.info(stream, consumer))
    return info.delivered.stream_seq
  }

  async #isLeased({ incarnation }: StoredChannel): Promise<boolean> {
    return (await this.#parts.counters.total(incarnation)).leased > 0
  }

  /**
   * Ends single messages: a purge of a subject makes server 2.9 forget other deliveries. While any
   * message is leased, messages that were delivered before are kept, because each may be the leased one.
   * Resolves with the number of ended messages, and the time of the first younger one.
   * @param minAgeMs Ends only messages of at least this age
   */
  async #sweepSubject(
    channel: StoredChannel,
    subject: string,
    after: number,
    minAgeMs = 0,
  ): Promise<{ readonly removed: number; readonly firstKept: number }> {
    const { clock, connection, messages } = this.#parts
    let removed = 0
    let firstKept = Infinity
    for (let from = after + 1; ;) {
      const found: StoredMessage[] = []
      await messages.forward(channel.stream, subject, from, Number.MAX_SAFE_INTEGER, PARALLEL, (message) => {
        if (minAgeMs > 0 && message.timestamp + minAgeMs > clock.now()) {
          firstKept = message.timestamp
          return false
        }
        found.push(message)
        return found.length < PARALLEL
      })
      const outcomes = await Promise.all(found.map((message) => this.#expire(channel, message)))
      removed += outcomes.filter(Boolean).length
      const last = found.at(-1)?.sequence
      if (last === undefined || found.length < PARALLEL || !connection.connected) return { removed, firstKept }
      from = last + 1
    }
  }

  /** Removes a message from the stream, and from the consumer's state. Returns false if it did not exist. */
  async removeOne(channel: StoredChannel, sequence: number): Promise<boolean> {
    const { connection } = this.#parts
    return connection.call(async () => {
      try {
        return await connection.manager.streams.deleteMessage(channel.stream, sequence)
      } catch (error) {
        if (isApiError(error, API.MESSAGE_NOT_FOUND, API.STREAM_NOT_FOUND, API.DELETE_FAILED)) return false
        throw error
      }
    })
  }

  /** Counts a message that was returned with a delay, until the delay ends. */
  retriesIn({ incarnation }: StoredChannel, delayMs: number): void {
    const { counterTable } = this.#parts
    const timers = this.#retries.get(incarnation) ?? new Set()
    this.#retries.set(incarnation, timers)
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        if (timers.size === 0) this.#retries.delete(incarnation)
        counterTable.change(incarnation, (counts) => counts.retrying--)
      },
      Math.min(MAX_TIMER_MS, delayMs),
    )
    timer.unref()
    timers.add(timer)
    counterTable.change(incarnation, (counts) => counts.retrying++)
  }

  /** Ends the count of messages that wait for their next attempt, after they were purged. */
  noRetries(incarnation: string): void {
    if (this.#forgetRetries(incarnation)) {
      this.#parts.counterTable.change(incarnation, (counts) => (counts.retrying = 0))
    }
  }

  #forgetRetries(incarnation: string): boolean {
    for (const timer of this.#retries.get(incarnation) ?? []) clearTimeout(timer)
    return this.#retries.delete(incarnation)
  }

  forget(incarnation: string): void {
    this.#forgetRetries(incarnation)
    this.#about.delete(incarnation)
    clearTimeout(this.#sweeps.get(incarnation)?.timer)
    this.#sweeps.delete(incarnation)
  }

  close(): void {
    this.#closed = true
    for (const incarnation of this.#sweeps.keys()) this.forget(incarnation)
    for (const incarnation of this.#retries.keys()) this.#forgetRetries(incarnation)
  }
}
