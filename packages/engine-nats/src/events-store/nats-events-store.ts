import type {
  AppendResult,
  ChannelOptions,
  EventsStoreAppend,
  EventsStoreEngine,
  EventsStoreStart,
  EventsStoreSubscribeOptions,
  LatestOptions,
  ReadOptions,
  StoredEvent,
  StoredEventListener,
  Subscription,
} from '@signalbox/broker-core/engine'
import {
  BrokerError,
  encodeEntry,
  entryKeyOf,
  isCompact,
  messageSize,
  OpenSubscription,
  TOMBSTONE_MS,
  unavailable,
} from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { isWrongSequence } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { failure } from '../problems.ts'
import type { Published } from '../publisher.ts'
import { claimOf, encodedAgain, StreamGone } from '../publisher.ts'
import { hash } from '../subjects.ts'
import { EventsStoreFollower } from './events-store-follower.ts'
import type { GroupName } from './events-store-group-member.ts'
import { EventsStoreGroupMember } from './events-store-group-member.ts'
import { EventsStoreReader, storedEventOf } from './events-store-reader.ts'

const TRIES = 3

/** Events stores on NATS: each is a stream, whose sequences are the channel's. */
export class NatsEventsStore implements EventsStoreEngine {
  readonly reader: EventsStoreReader
  readonly tombstones: Tombstones
  readonly #parts: Parts
  /** Each subscription, with the incarnation that counts it. */
  readonly #subscriptions = new Map<OpenSubscription, { readonly name: string; countedAt: string | undefined }>()
  readonly #running = new Set<Promise<void>>()
  /** The stores that have entries, and so stay as they are although their settings are to compact them. */
  readonly #notEmpty = new Set<string>()
  #closed = false

  constructor(parts: Parts) {
    this.#parts = parts
    parts.channelSettings.onChange(() => this.#notEmpty.clear())
    this.reader = new EventsStoreReader(parts)
    this.tombstones = new Tombstones(parts)
    this.tombstones.start()
    parts.storedChannels.onChange(({ type, name }) => {
      if (type !== 'events_store') return
      for (const place of this.#subscriptions.values()) if (place.name === name) this.#count(place)
    })
  }

  /** Counts a subscription at the current channel of its name, if there is one. */
  #count(place: { readonly name: string; countedAt: string | undefined }): void {
    const { counterTable, storedChannels } = this.#parts
    const now = storedChannels.get('events_store', place.name)?.incarnation
    if (now === place.countedAt) return
    if (place.countedAt !== undefined && counterTable.get(place.countedAt))
      counterTable.subscribers(place.countedAt, -1)
    if (now !== undefined) counterTable.subscribers(now, 1)
    place.countedAt = now
  }

  async append(name: string, given: EventsStoreAppend): Promise<AppendResult> {
    this.#checkOpen()
    const key = entryKeyOf(this.#parts.channelSettings, name, given)
    const message = key === given.key ? given : { ...given, key }
    const { tombstone = false, deduplicationId } = message
    const origin = deduplicationId === undefined ? undefined : hash(deduplicationId)
    const encodeOnce = (): Uint8Array => encodeEntry(name, { message, key, tombstone, origin })
    const first = encodeOnce()
    this.#parts.publisher.assertFits(first)
    const encode = encodedAgain(first, encodeOnce)
    for (let tries = 0; tries < TRIES; tries++) {
      const channel = await this.#channelFor(name)
      try {
        return await this.#result(channel, message, await this.#publish(channel, message, encode))
      } catch (error) {
        if (!(error instanceof StreamGone)) throw error
        await this.#parts.storedChannels.settle('events_store', name, channel)
      }
    }
    throw unavailable('other nodes create and delete the events store at the same time')
  }

  /** Returns the channel for an append. Compacts it first if its settings say so and it is empty. */
  async #channelFor(name: string): Promise<StoredChannel> {
    const { channelSettings, storedChannels } = this.#parts
    const compacted = isCompact(channelSettings, name)
    const channel = await storedChannels.ensure('events_store', name, compacted ? { compacted } : {})
    if (!compacted || channel.options.compacted || this.#notEmpty.has(channel.incarnation)) return channel
    if ((await this.reader.counts(channel)).entries === 0) return storedChannels.update(channel, { compacted })
    this.#notEmpty.add(channel.incarnation)
    return channel
  }

  async #publish(channel: StoredChannel, message: EventsStoreAppend, encode: () => Uint8Array): Promise<Published> {
    const { subjects, publisher } = this.#parts
    const { key, deduplicationId, expectLastOfKey } = message
    const { incarnation, options } = channel
    if (key !== undefined && expectLastOfKey !== undefined) {
      return this.#publishExpecting(channel, message, encode, key, expectLastOfKey)
    }
    const subject =
      key === undefined ? subjects.entry(incarnation, options.compacted) : subjects.keyed(incarnation, key)
    const messageId = deduplicationId === undefined ? undefined : hash(deduplicationId)
    return publisher.publish(subject, encode, { channel: incarnation, messageId })
  }

  async #publishExpecting(
    channel: StoredChannel,
    message: EventsStoreAppend,
    encode: () => Uint8Array,
    key: string,
    expected: number,
  ): Promise<Published> {
    const subject = this.#parts.subjects.keyed(channel.incarnation, key)
    const { incarnation } = channel
    const options = {
      channel: incarnation,
      messageId: claimOf(subject, expected),
      expectLastOfSubject: expected,
    }
    try {
      const published = await this.#parts.publisher.publish(subject, encode, options, (error) =>
        isWrongSequence(error) ? error : undefined,
      )
      if (!published.duplicate) return published
    } catch (error) {
      if (!isWrongSequence(error)) throw error
    }
    const last = await this.reader.lastWithOrigin(channel, key)
    const { deduplicationId } = message
    if (last && deduplicationId !== undefined && last.origin === hash(deduplicationId)) {
      return { sequence: last.sequence, duplicate: true }
    }
    throw new BrokerError(
      'CONFLICT',
      `another write of the key ${JSON.stringify(key.slice(0, 64))} came first: its last entry is ${last?.sequence ?? 0}, not ${expected}`,
      { key, last: last?.sequence ?? 0 },
    )
  }

  /** The servers report the sequence, not the time; the stored entry has it. */
  async #result(
    channel: StoredChannel,
    message: EventsStoreAppend,
    { sequence, duplicate }: Published,
  ): Promise<AppendResult> {
    const { messages, counterTable, recent, subjects } = this.#parts
    const { deduplicationId } = message
    const stored = await messages.get(channel.stream, { seq: sequence })
    const timestamp = stored?.timestamp ?? Date.now()
    if (duplicate && deduplicationId !== undefined) {
      const key = subjects.recent(channel.incarnation, deduplicationId)
      const first = stored && storedEventOf(channel.name, stored)
      return { id: first?.id ?? (await recent.get(key))?.text ?? message.id, sequence, duplicate, timestamp }
    }
    counterTable.received(channel.incarnation, 1, messageSize(message))
    if (message.tombstone === true && channel.options.compacted) {
      await this.tombstones.written(channel, sequence, timestamp)
    }
    if (deduplicationId !== undefined) {
      await recent.put(subjects.recent(channel.incarnation, deduplicationId), message.id)
    }
    return { id: message.id, sequence, duplicate: false, timestamp }
  }

  async read(name: string, options: ReadOptions): Promise<readonly StoredEvent[]> {
    const channel = await this.#existing(name)
    return channel ? this.reader.read(channel, options) : []
  }

  async readLatest(name: string, options: LatestOptions): Promise<readonly StoredEvent[]> {
    const channel = await this.#existing(name)
    return channel ? this.reader.readLatest(channel, options) : []
  }

  async getLast(name: string, key: string): Promise<StoredEvent | undefined> {
    const channel = await this.#existing(name)
    return channel && this.reader.last(channel, key)
  }

  async #existing(name: string): Promise<StoredChannel | undefined> {
    this.#checkOpen()
    await this.#parts.connection.ready()
    return this.#parts.storedChannels.get('events_store', name)
  }

  async subscribe(
    name: string,
    start: EventsStoreStart,
    { group, durable = false, signal }: EventsStoreSubscribeOptions,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    signal?.throwIfAborted()
    this.#checkOpen()
    const channel = await this.#parts.storedChannels.ensure('events_store', name)
    const first = await this.reader.startOf(channel, start)
    signal?.throwIfAborted()
    if (group === undefined) return this.#follow(channel, first, signal, listener)
    return this.#join(channel, { group, durable }, first, signal, listener)
  }

  #follow(
    channel: StoredChannel,
    first: number,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Subscription {
    const subscription = this.#open(channel, signal)
    this.#run(new EventsStoreFollower(this.#parts, channel, first, subscription, listener).run())
    return subscription
  }

  async #join(
    channel: StoredChannel,
    group: GroupName,
    first: number,
    signal: AbortSignal | undefined,
    listener: StoredEventListener,
  ): Promise<Subscription> {
    const subscription = this.#open(channel, signal)
    const member = new EventsStoreGroupMember(this.#parts, channel, group, first, subscription, listener)
    try {
      await member.join()
    } catch (error) {
      subscription.end()
      throw error
    }
    const running = member.run()
    this.#run(running)
    const left = subscription.closed.then(async () => {
      await running
      await member.leave(!this.#closed)
    })
    this.#run(left)
    // Resolves when the group continues without this subscriber.
    const close = async (): Promise<void> => {
      subscription.end()
      await left
    }
    return { closed: subscription.closed, close, [Symbol.asyncDispose]: close }
  }

  #open(channel: StoredChannel, signal: AbortSignal | undefined): OpenSubscription {
    const place = { name: channel.name, countedAt: undefined }
    const subscription: OpenSubscription = new OpenSubscription(signal, () => this.#forget(subscription))
    this.#subscriptions.set(subscription, place)
    this.#count(place)
    return subscription
  }

  #forget(subscription: OpenSubscription): void {
    const { counterTable } = this.#parts
    const countedAt = this.#subscriptions.get(subscription)?.countedAt
    this.#subscriptions.delete(subscription)
    if (countedAt !== undefined && counterTable.get(countedAt)) counterTable.subscribers(countedAt, -1)
  }

  #run(work: Promise<void>): void {
    const running = work
      .catch((error: unknown) => {
        this.#parts.settings.onProblem(failure('a subscription to an events store', error))
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async create(name: string, options: ChannelOptions): Promise<boolean> {
    const { storedChannels } = this.#parts
    if (storedChannels.isMissing('events_store', name)) {
      await storedChannels.ensure('events_store', name, options)
      return true
    }
    const channel = await storedChannels.ensure('events_store', name)
    await this.#assertCanCompact(channel, options)
    await storedChannels.update(channel, options)
    return false
  }

  /** Entries without a key that were appended before could not all be kept. */
  async #assertCanCompact(channel: StoredChannel, { compacted }: ChannelOptions): Promise<void> {
    if (compacted !== true || channel.options.compacted) return
    const { connection, subjects } = this.#parts
    const filter = subjects.entry(channel.incarnation, false)
    const info = await connection.call(() =>
      connection.manager.streams.info(channel.stream, { subjects_filter: filter }),
    )
    if ((info.state.subjects?.[filter] ?? 0) <= 1) return
    throw new BrokerError(
      'ARGUMENT_INVALID',
      `the events store ${JSON.stringify(channel.name)} has entries without a key, so it can no longer be compacted; delete it, or use another`,
      { argument: 'compacted', allowed: 'false' },
    )
  }

  #checkOpen(): void {
    if (this.#closed) throw unavailable('it is closed')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.tombstones.stop()
    for (const subscription of this.#subscriptions.keys()) subscription.end(unavailable('it is closed'))
    await Promise.race([Promise.all(this.#running), new Promise((resolve) => setTimeout(resolve, 1_000).unref())])
  }
}

const SWEEP_MS = 60_000

/** Removes each tombstone an hour after it was written, on the first node that finds it due. */
class Tombstones {
  readonly #parts: Parts
  #timer: NodeJS.Timeout | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.sweep(Date.now()).catch((error: unknown) => {
        this.#parts.settings.onProblem(failure('removing tombstones', error))
      })
    }, SWEEP_MS)
    this.#timer.unref()
  }

  async written({ incarnation }: StoredChannel, sequence: number, timestamp: number): Promise<void> {
    const { keyedRecords, subjects } = this.#parts
    await keyedRecords.put(subjects.keyedRecord('x', incarnation, sequence), String(timestamp + TOMBSTONE_MS))
  }

  /** Removes the tombstones that are due at `now`. */
  async sweep(now: number): Promise<void> {
    const { clock, connection, keyedRecords, storedChannels, subjects } = this.#parts
    if (!connection.connected || clock.isSkewed) return
    const eventsStore = new Map(storedChannels.all('events_store').map((channel) => [channel.incarnation, channel]))
    for (const key of await keyedRecords.keys(subjects.keyedRecord('x', '>'))) {
      const [incarnation = '', sequence] = key.split('.').slice(-2)
      const channel = eventsStore.get(incarnation)
      const record = await keyedRecords.get(key)
      if (channel && record && Number(record.text) > now) continue
      // An invalid record removes nothing.
      if (channel && record && /^\d+$/.test(record.text)) {
        // A newer entry of the key may have removed it already.
        await connection.manager.streams.deleteMessage(channel.stream, Number(sequence)).catch(() => false)
      }
      await keyedRecords.remove(key)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
