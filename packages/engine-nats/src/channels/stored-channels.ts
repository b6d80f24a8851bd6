import type { ChannelName, ChannelOptions, StoredType } from '@signalbox/broker-core/engine'
import { BrokerError, isReservedChannel, unavailable } from '@signalbox/broker-core/engine'
import { ChannelMap } from '@signalbox/broker-core/internal'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from '../connection.ts'
import type { NatsEngineProblem } from '../options.ts'
import { failure, runInBackground } from '../problems.ts'
import type { Streams } from '../streams.ts'
import type { Subjects } from '../subjects.ts'
import { unique } from '../subjects.ts'
import type { ChannelBucket, ChannelNews, Following, StoredChannel } from './channel-bucket.ts'
import { optionsFrom } from './channel-bucket.ts'

/** The pause before a failed read of the bucket is repeated, in milliseconds. */
const RETRY_MS = 1_000

/** Hears of a channel that was created or is being deleted. */
type ChannelListener = (channel: StoredChannel, exists: boolean) => void

/** All queues and events stores, by following the bucket of channels. */
export class StoredChannels {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #streams: Streams
  readonly #bucket: ChannelBucket
  readonly #limit: ChannelLimit
  readonly #onProblem: (problem: NatsEngineProblem) => void
  readonly #channels: Record<StoredType, ChannelMap<StoredChannel>> = {
    queues: new ChannelMap('queues'),
    events_store: new ChannelMap('events_store'),
  }
  readonly #incarnations = new Map<string, StoredChannel>()
  /** Channels that are being created, so that concurrent first uses create one. */
  readonly #making = new Map<string, Promise<StoredChannel>>()
  readonly #listeners = new Set<ChannelListener>()
  readonly #stopping = new AbortController()
  #following: Following | undefined
  #isSyncing = false
  #isStale = false

  constructor(
    connection: Connection,
    subjects: Subjects,
    streams: Streams,
    bucket: ChannelBucket,
    limit: ChannelLimit,
    onProblem: (problem: NatsEngineProblem) => void,
  ) {
    this.#connection = connection
    this.#subjects = subjects
    this.#streams = streams
    this.#bucket = bucket
    this.#limit = limit
    this.#onProblem = onProblem
  }

  /** Reads the bucket and follows it. Resolves when every channel is known. */
  async sync(): Promise<void> {
    const stopped = this.#following
    // Cleared first: the end of the following that is still set reads the bucket again.
    this.#following = undefined
    stopped?.stop()
    const before = [...this.#incarnations.values()]
    const seen = new Set<string>()
    const following = await this.#bucket.follow((news) => this.#hear(news, seen))
    this.#following = following
    const again = following.ended.then(() => {
      if (this.#following === following && !this.#stopping.signal.aborted) this.resync()
    })
    runInBackground(this.#onProblem, 'following the channels', again)
    if (!(await following.caughtUp)) throw new Error('the servers lost the consumer of the bucket')
    // Channels that were created in the meantime are not in `before`: their entries may still be on their
    // way.
    for (const channel of before) if (!seen.has(channel.incarnation)) this.#forget(channel)
  }

  #hear(news: ChannelNews, seen: Set<string>): void {
    if ('channel' in news) {
      seen.add(news.channel.incarnation)
      this.#take(news.channel)
      return
    }
    const { type, name, revision } = news.gone
    const channel = this.#channels[type].get(name)
    if (channel && channel.revision < revision) this.#forget(channel)
  }

  /**
   * Reads the bucket again after the connection was lost. Repeats until it succeeds, because changes in the
   * meantime are not reported otherwise.
   */
  resync(): void {
    this.#isStale = true
    if (!this.#isSyncing) runInBackground(this.#onProblem, 'reading the channels again', this.#syncWhileStale())
  }

  async #syncWhileStale(): Promise<void> {
    this.#isSyncing = true
    const { signal } = this.#stopping
    while (this.#isStale && !signal.aborted) {
      this.#isStale = false
      try {
        await this.sync()
      } catch (error) {
        if (signal.aborted) break
        this.#failed('reading the channels again', error)
        this.#isStale = true
        await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
      }
    }
    this.#isSyncing = false
  }

  #failed(what: string, error: unknown): void {
    if (!this.#stopping.signal.aborted) this.#onProblem(failure(what, error))
  }

  #take(channel: StoredChannel): void {
    const known = this.#channels[channel.type].get(channel.name)
    if (known && known.revision >= channel.revision) return
    if (known && known.incarnation !== channel.incarnation) this.#forget(known)
    const isNew = !this.#channels[channel.type].has(channel.name)
    this.#channels[channel.type].set(channel.name, channel)
    this.#incarnations.set(channel.incarnation, channel)
    if (!isNew) return
    if (!isReservedChannel(channel.name)) this.#limit.added()
    this.#notifyListeners(channel, true)
  }

  #forget(channel: StoredChannel): void {
    if (this.#channels[channel.type].get(channel.name) !== channel) return
    this.#channels[channel.type].delete(channel.name)
    this.#incarnations.delete(channel.incarnation)
    if (!isReservedChannel(channel.name)) this.#limit.removed()
    this.#notifyListeners(channel, false)
  }

  #notifyListeners(channel: StoredChannel, exists: boolean): void {
    for (const listener of this.#listeners) listener(channel, exists)
  }

  /**
   * Notifies the listener when a channel is created, and when it is deleted: a replaced one is first deleted. Returns
   * a function that removes the listener.
   */
  onChange(listener: ChannelListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get(type: StoredType, name: string): StoredChannel | undefined {
    return this.#channels[type].get(name)
  }

  all(type: StoredType): StoredChannel[] {
    return [...this.#channels[type].values()]
  }

  /** Returns the channels of a type in the order of their names. */
  ordered(type: StoredType): Promise<readonly ChannelName[]> {
    return this.#channels[type].ordered()
  }

  byIncarnation(incarnation: string): StoredChannel | undefined {
    return this.#incarnations.get(incarnation)
  }

  byStream(stream: string): StoredChannel | undefined {
    for (const channel of this.#incarnations.values()) if (channel.stream === stream) return channel
    return undefined
  }

  /** Reads a channel from the bucket itself. @throws BrokerError ENGINE_UNAVAILABLE */
  read(type: StoredType, name: string): Promise<StoredChannel | 'unreadable' | undefined> {
    return this.#bucket.read(type, name)
  }

  /**
   * Returns the channel, and creates it if it does not exist.
   * @throws BrokerError CHANNEL_LIMIT, ENGINE_UNAVAILABLE
   */
  async ensure(type: StoredType, name: string, options: ChannelOptions = {}): Promise<StoredChannel> {
    const known = this.#channels[type].get(name)
    if (known) return known
    const key = `${type} ${name}`
    const making = this.#making.get(key)
    if (making) return making
    const make = (): Promise<StoredChannel> => this.#connection.call(() => this.#make(type, name, options))
    const made = isReservedChannel(name) ? make() : this.#limit.whileMaking(make)
    this.#making.set(key, made)
    try {
      return await made
    } finally {
      this.#making.delete(key)
    }
  }

  /** Returns true when {@link ensure} would create the channel. */
  isMissing(type: StoredType, name: string): boolean {
    return !this.#channels[type].has(name) && !this.#making.has(`${type} ${name}`)
  }

  async #make(type: StoredType, name: string, given: ChannelOptions): Promise<StoredChannel> {
    const incarnation = unique()
    const stream = this.#subjects.stream(type, name, incarnation)
    const channel = { type, name, incarnation, stream, options: optionsFrom(given), revision: 0 }
    // The stream is created first, so that the channel is usable as soon as it is visible. Housekeeping
    // removes a stream without a channel.
    await this.#streams.create(channel)
    const written = await this.#bucket.add(channel)
    if (written === 'unreadable' || written.incarnation !== incarnation) await this.#streams.remove(stream)
    if (written === 'unreadable')
      throw unavailable('the entry of this channel in the bucket of channels cannot be read')
    this.#take(written)
    return written
  }

  /** Changes the options of a channel. */
  async update(channel: StoredChannel, given: ChannelOptions): Promise<StoredChannel> {
    const options = optionsFrom({ ...channel.options, ...given })
    if (JSON.stringify(options) === JSON.stringify(channel.options)) return channel
    const changed = { ...channel, options }
    await this.#connection.call(() => this.#streams.update(changed))
    const written = await this.#bucket.replace(changed)
    // Another node changed them at the same time; its change arrives from the bucket.
    if (!written) return channel
    this.#take(written)
    return written
  }

  async delete(type: StoredType, name: string): Promise<StoredChannel | undefined> {
    const channel = this.#channels[type].get(name)
    if (!channel) return undefined
    await this.#bucket.remove(type, name)
    this.#forget(channel)
    await this.#connection.call(() => this.#streams.remove(channel.stream))
    return channel
  }

  /**
   * Waits for the bucket after the servers reported that a channel's stream is gone. Deletes the channel if
   * its stream was removed by hand.
   */
  async settle(type: StoredType, name: string, channel: StoredChannel): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      if (this.#channels[type].get(name)?.incarnation !== channel.incarnation) return
      await pause(50)
    }
    if (!(await this.#streams.exists(channel.stream))) await this.delete(type, name)
  }

  stop(): void {
    this.#stopping.abort()
    this.#following?.stop()
    this.#listeners.clear()
  }
}

/**
 * The number of channels beyond the limit that are accepted from other nodes: nodes that reach the limit at
 * the same time each create some.
 */
const OVERSHOOT = 100

/** The number of channels of all types, and its limit. The broker's own channels do not count. */
export class ChannelLimit {
  readonly #limit: number
  #channels = 0
  #making = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get channels(): number {
    return this.#channels
  }

  added(): void {
    this.#channels++
  }

  removed(): void {
    this.#channels--
  }

  /** @throws BrokerError CHANNEL_LIMIT */
  assertRoom(): void {
    if (this.#channels + this.#making < this.#limit) return
    throw new BrokerError(
      'CHANNEL_LIMIT',
      `the limit of ${this.#limit} channels is reached; delete some, or raise the limit`,
      { limit: this.#limit },
    )
  }

  /** `true` while a channel that another node announced is accepted. */
  get hasRoomForAnnounced(): boolean {
    return this.#channels < this.#limit + OVERSHOOT
  }

  /** Counts a channel while it is being created. @throws BrokerError CHANNEL_LIMIT */
  async whileMaking<T>(make: () => Promise<T>): Promise<T> {
    this.assertRoom()
    this.#making++
    try {
      return await make()
    } finally {
      this.#making--
    }
  }
}
