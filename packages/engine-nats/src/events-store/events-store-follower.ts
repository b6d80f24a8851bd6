import type { OpenSubscription, StoredEvent, StoredEventListener } from '@signalbox/broker-core/engine'
import { messageSize, unavailable } from '@signalbox/broker-core/engine'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import { setTimeout as pause } from 'node:timers/promises'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import type { Received } from '../large/thread-calls.ts'
import type { Parts } from '../parts.ts'
import { reportFailure, runInBackground } from '../problems.ts'
import { parseAckSubject } from '../pulls.ts'
import { unique } from '../subjects.ts'
import { EventsStoreReader, storedEventOf } from './events-store-reader.ts'

/** The maximum number of entries, and of bytes, in one request. */
const BATCH = 100
const BATCH_BYTES = 4 * 1024 * 1024
/** The duration of one request for entries; after one without entries the consumer is checked. */
const PULL_MS = 10_000
/** The time after which the servers remove the consumer of a follower that died, in milliseconds. */
const FORGOTTEN_MS = 5 * 60_000
const NANOS = 1_000_000
/**
 * The time for which the servers may hold fewer entries than they delivered, during an election, before the
 * subscription ends, in milliseconds.
 */
const BEHIND_MS = 3_000

/**
 * A subscription to an events store: a position, and a short-lived consumer. When the servers lose the
 * consumer, a new one starts at the position.
 */
export class EventsStoreFollower {
  readonly #parts: Parts
  readonly #name: string
  readonly #subscription: OpenSubscription
  readonly #listener: StoredEventListener
  readonly #loop: FollowLoop
  readonly #reader: EventsStoreReader
  #channel: StoredChannel
  #next: number
  #consumer: string | undefined
  /** The number of entries that the consumer has delivered. */
  #deliveries = 0
  /** The last sequence that was delivered in this incarnation. */
  #given = 0
  #behindSince: number | undefined
  /** The sequence up to which no entry is known to be missing. */
  #checkedTo = 0

  constructor(
    parts: Parts,
    channel: StoredChannel,
    next: number,
    subscription: OpenSubscription,
    listener: StoredEventListener,
  ) {
    this.#parts = parts
    this.#name = channel.name
    this.#channel = channel
    this.#next = next
    this.#subscription = subscription
    this.#listener = listener
    this.#loop = new FollowLoop(parts, channel.name, subscription)
    this.#reader = new EventsStoreReader(parts)
  }

  /** Runs until the subscription ends. */
  async run(): Promise<void> {
    try {
      await this.#loop.run(
        () => this.#step(),
        () => (this.#consumer = undefined),
      )
    } finally {
      this.#dropConsumer()
    }
  }

  async #step(): Promise<void> {
    const channel = this.#parts.storedChannels.get('events_store', this.#name)
    if (!channel) return this.#loop.wait(60_000)
    if (channel.incarnation !== this.#channel.incarnation) {
      // The channel was deleted and created again: all its entries are new.
      this.#dropConsumer()
      this.#channel = channel
      this.#next = 1
      this.#given = 0
      this.#checkedTo = 0
    }
    this.#channel = channel
    if (this.#consumer === undefined) await this.#assertNotBehind()
    const consumer = (this.#consumer ??= await this.#makeConsumer())
    const entries: StoredEvent[] = []
    let broken = false
    const { changed } = this.#loop
    const pulling = this.#parts.pulls.pull(
      channel.stream,
      consumer,
      { batch: BATCH, waitMs: PULL_MS, maxBytes: BATCH_BYTES },
      (message) => {
        const entry = this.#entryOf(message)
        if (entry) entries.push(entry)
        else broken = true
      },
    )
    const end = await Promise.race([pulling, changed])
    if (end === 'gone' || end === 'lost' || broken) {
      // This consumer is not used again: it may have delivered entries that did not arrive.
      this.#dropConsumer()
      if (entries.length === 0) await this.#loop.retryPause()
    }
    if (end === 'large') entries.push(...(await this.#large(channel)))
    if (end === undefined) this.#dropConsumer()
    if (end === 'done' && entries.length === 0) await this.#checkForMissed()
    await this.#deliver(entries)
  }

  /**
   * Decodes an entry. Returns undefined if it is not valid, or if an earlier delivery of the consumer did
   * not arrive.
   */
  #entryOf(message: Received): StoredEvent | undefined {
    const ack = parseAckSubject(message.reply ?? '')
    if (ack?.delivery !== ++this.#deliveries) return undefined
    return storedEventOf(this.#name, { data: message.data, sequence: ack.sequence, timestamp: ack.timestamp })
  }

  /** Reads an entry that is larger than a whole batch. */
  async #large(channel: StoredChannel): Promise<StoredEvent[]> {
    const found: StoredEvent[] = []
    const filter = this.#parts.subjects.all(channel.incarnation)
    await this.#parts.messages.forward(channel.stream, filter, this.#next, Number.MAX_SAFE_INTEGER, 1, (message) => {
      const entry = storedEventOf(this.#name, message)
      if (entry) found.push(entry)
      return false
    })
    this.#dropConsumer()
    return found
  }

  async #deliver(entries: readonly StoredEvent[]): Promise<void> {
    const { incarnation } = this.#channel
    for (const entry of entries) {
      if (this.#subscription.ended) return
      if (entry.sequence < this.#next) continue
      this.#next = entry.sequence + 1
      this.#given = entry.sequence
      this.#parts.counterTable.delivered(incarnation, 1, messageSize(entry))
      try {
        await this.#listener(entry)
      } catch (error) {
        this.#parts.settings.onProblem({ kind: 'listener', message: 'the listener of an events store threw', error })
      }
    }
  }

  /**
   * A faulty server may, after a restart, deliver sequences that the other servers never assigned (observed
   * with 2.9). A subscription that waits for the next of them would be silent for very long, so it ends with
   * an error.
   */
  async #assertNotBehind(): Promise<void> {
    if (this.#given === 0) return
    const { lastEver } = await this.#reader.counts(this.#channel)
    if (this.#given <= lastEver) {
      this.#behindSince = undefined
      return
    }
    this.#behindSince ??= Date.now()
    const error = unavailable(`the servers hold entries up to ${lastEver}, but delivered ${this.#given} before`)
    if (Date.now() - this.#behindSince >= BEHIND_MS) this.#subscription.end(error)
    throw error
  }

  /**
   * A consumer on a frozen server may report that it is alive and never deliver again (observed with 2.15 in
   * a chaos run). If the servers hold more entries than arrived, the consumer is replaced, once for each
   * last sequence, because the missing entries may have been removed.
   */
  async #checkForMissed(): Promise<void> {
    const { lastEver } = await this.#reader.counts(this.#channel)
    if (lastEver < this.#next || lastEver === this.#checkedTo) return
    this.#checkedTo = lastEver
    this.#dropConsumer()
  }

  async #makeConsumer(): Promise<string> {
    const { connection } = this.#parts
    const name = `f-${unique()}`
    this.#deliveries = 0
    await connection.call(() =>
      connection.manager.consumers.add(this.#channel.stream, {
        name,
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: this.#next,
        inactive_threshold: FORGOTTEN_MS * NANOS,
        mem_storage: true,
        num_replicas: 1,
      }),
    )
    return name
  }

  #dropConsumer(): void {
    const { connection } = this.#parts
    const consumer = this.#consumer
    this.#consumer = undefined
    if (consumer === undefined || !connection.connected) return
    // If this fails, the servers remove the consumer after FORGOTTEN_MS.
    connection.manager.consumers.delete(this.#channel.stream, consumer).catch(() => {})
  }
}

const RETRY_MS = 200

/**
 * Repeats the steps of a subscription to an events store until it ends, and wakes a waiting step when the
 * channel changes.
 */
export class FollowLoop {
  readonly #parts: Parts
  readonly #name: string
  readonly #subscription: OpenSubscription
  #changed: PromiseWithResolvers<void> | undefined

  constructor(parts: Parts, name: string, subscription: OpenSubscription) {
    this.#parts = parts
    this.#name = name
    this.#subscription = subscription
  }

  /** Resolves when the channel is created, deleted or replaced, or the subscription ends. */
  get changed(): Promise<void> {
    return (this.#changed ??= Promise.withResolvers()).promise
  }

  /** @param failed Called after each failed step, before the pause. */
  async run(step: () => Promise<void>, failed: () => void = () => {}): Promise<void> {
    const { storedChannels, settings } = this.#parts
    const stopListening = storedChannels.onChange(({ type, name }) => {
      if (type === 'events_store' && name === this.#name) this.#wake()
    })
    const woken = this.#subscription.closed.then(() => this.#wake())
    runInBackground(settings.onProblem, 'ending a subscription to an events store', woken)
    try {
      while (!this.#subscription.ended) {
        try {
          await step()
        } catch (error) {
          if (this.#subscription.ended) break
          reportFailure(settings.onProblem, 'following an events store', error)
          failed()
          await this.retryPause()
        }
      }
    } finally {
      stopListening()
    }
  }

  /** Waits until {@link changed}, or until the time is over. */
  async wait(milliseconds: number): Promise<void> {
    const late = new AbortController()
    const timer = pause(milliseconds, undefined, { signal: late.signal, ref: false }).catch(() => {})
    await Promise.race([this.changed, timer])
    late.abort()
  }

  /** Pauses before the servers are asked again. */
  retryPause(): Promise<void> {
    return this.wait(RETRY_MS)
  }

  #wake(): void {
    this.#changed?.resolve()
    this.#changed = undefined
  }
}
