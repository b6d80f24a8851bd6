import type { ChannelOptions } from '@signalbox/broker-core'
import { BrokerError, isReservedChannel } from '@signalbox/broker-core'
import type { KV, KvEntry } from '@nats-io/kv'
import { Kvm } from '@nats-io/kv'
import { Buffer } from 'node:buffer'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from '../connection.ts'
import { API, isApiError, messageOf, unavailable } from '../errors.ts'
import type { Settings } from '../options.ts'
import { claimOf } from '../publisher.ts'
import type { Publisher } from '../publisher.ts'
import type { StoredMessages } from '../stored-messages.ts'
import type { Streams } from '../streams.ts'
import { unique } from '../subjects.ts'
import type { Subjects } from '../subjects.ts'
import type { LiveChange, LiveType } from './peers.ts'

export type StoredType = 'queues' | 'events_store'

/** A channel whose messages are kept: a stream of its own. */
export interface StoredChannel {
  readonly type: StoredType
  readonly name: string
  /** Another one for a channel that was deleted and made again; also the key of its counters. */
  readonly incarnation: string
  readonly stream: string
  readonly options: Readonly<Required<ChannelOptions>>
  readonly revision: number
}

/** The key of a channel in memory for its figures. */
export function liveKey(type: LiveType, name: string): string {
  return `${type} ${name}`
}

/** A broker's own channel in memory goes when it was not used for this long: streams leave one each. */
const RESERVED_IDLE_MS = 5 * 60_000

/**
 * Every channel there is. Stored ones stand in a bucket that each node watches; those of the other types live in the
 * memory of all nodes, as long as one of them does.
 */
export class ChannelRegistry {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #streams: Streams
  readonly #publisher: Publisher
  readonly #messages: StoredMessages
  readonly #settings: Settings
  readonly #stored: Record<StoredType, Map<string, StoredChannel>> = { queues: new Map(), events_store: new Map() }
  readonly #live: Record<LiveType, Map<string, { usedAt: number }>> = {
    events: new Map(),
    commands: new Map(),
    queries: new Map(),
  }
  readonly #incarnations = new Set<string>()
  /** Stored channels that are being made, so that concurrent first uses make one, and are counted. */
  readonly #making = new Map<string, Promise<StoredChannel>>()
  readonly #listeners = new Set<(type: StoredType, name: string) => void>()
  #announce: (change: LiveChange) => void = () => {}
  #kv: KV | undefined
  #watch: { stop(): void } | undefined
  #userChannels = 0
  #reservedMaking = 0

  constructor(
    connection: Connection,
    subjects: Subjects,
    streams: Streams,
    publisher: Publisher,
    messages: StoredMessages,
    settings: Settings,
  ) {
    this.#connection = connection
    this.#publisher = publisher
    this.#messages = messages
    this.#subjects = subjects
    this.#streams = streams
    this.#settings = settings
  }

  /** Resolves once every stored channel is known. */
  async start(announce: (change: LiveChange) => void): Promise<void> {
    this.#announce = announce
    const kvm = new Kvm(this.#connection.client)
    this.#kv = await kvm.create(this.#subjects.channelBucket, { history: 1, replicas: this.#settings.replicas })
    await this.resync()
  }

  /** Reads the bucket anew and follows it: at the start, and when the connection was lost. */
  async resync(): Promise<void> {
    const kv = this.#kv
    if (!kv) return
    this.#watch?.stop()
    const before = this.allStored('queues').concat(this.allStored('events_store'))
    const watch = await kv.watch()
    this.#watch = watch
    const seen = new Set<string>()
    const caughtUp = Promise.withResolvers<void>()
    const pending = (await kv.status()).values
    if (pending === 0) caughtUp.resolve()
    void this.#follow(watch, seen, pending, caughtUp.resolve)
    await caughtUp.promise
    // Those made in the meantime are not among them: their entries may still be on their way.
    for (const channel of before) if (!seen.has(channel.incarnation)) this.#forget(channel)
  }

  async #follow(
    watch: AsyncIterable<KvEntry>,
    seen: Set<string>,
    pending: number,
    caughtUp: () => void,
  ): Promise<void> {
    let count = 0
    try {
      for await (const entry of watch) {
        const channel = entry.operation === 'PUT' ? this.#parse(entry.string(), entry.revision) : undefined
        if (channel) {
          seen.add(channel.incarnation)
          this.#take(channel)
        } else if (entry.operation !== 'PUT') {
          this.#gone(entry)
        }
        if (++count >= pending || entry.delta === 0) caughtUp()
      }
    } catch (error) {
      this.#settings.onProblem({ kind: 'failed', message: `watching the channels: ${messageOf(error)}`, error })
    } finally {
      caughtUp()
    }
  }

  #parse(text: string, revision: number): StoredChannel | undefined {
    try {
      const content: unknown = JSON.parse(text)
      const { type, name, incarnation, options } = Object.fromEntries(Object.entries(content ?? {})) as Record<
        string,
        unknown
      >
      if ((type !== 'queues' && type !== 'events_store') || typeof name !== 'string') return undefined
      if (typeof incarnation !== 'string') return undefined
      const stream = this.#subjects.stream(type, name, incarnation)
      return { type, name, incarnation, stream, options: optionsFrom(options), revision }
    } catch {
      return undefined
    }
  }

  #take(channel: StoredChannel): void {
    const known = this.#stored[channel.type].get(channel.name)
    if (known && known.revision >= channel.revision) return
    if (known && known.incarnation !== channel.incarnation) this.#forget(known)
    const isNew = this.#stored[channel.type].get(channel.name) === undefined
    this.#stored[channel.type].set(channel.name, channel)
    this.#incarnations.add(channel.incarnation)
    if (isNew && !isReservedChannel(channel.name)) this.#userChannels++
    if (isNew) for (const listener of this.#listeners) listener(channel.type, channel.name)
  }

  #forget(channel: StoredChannel): void {
    if (this.#stored[channel.type].get(channel.name) !== channel) return
    this.#stored[channel.type].delete(channel.name)
    this.#incarnations.delete(channel.incarnation)
    if (!isReservedChannel(channel.name)) this.#userChannels--
    for (const listener of this.#listeners) listener(channel.type, channel.name)
  }

  #gone(entry: KvEntry): void {
    const [type, encoded = ''] = entry.key.split('.')
    if (type !== 'queues' && type !== 'events_store') return
    const channel = this.#stored[type].get(Buffer.from(encoded, 'base64url').toString())
    if (channel && channel.revision < entry.revision) this.#forget(channel)
  }

  /** Told when a stored channel comes, goes, or is another one than before. */
  onChange(listener: (type: StoredType, name: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stored(type: StoredType, name: string): StoredChannel | undefined {
    return this.#stored[type].get(name)
  }

  allStored(type: StoredType): StoredChannel[] {
    return [...this.#stored[type].values()]
  }

  isStored(incarnation: string): boolean {
    return this.#incarnations.has(incarnation)
  }

  /**
   * The stored channel, made when there is none.
   * @throws BrokerError CHANNEL_LIMIT, ENGINE_UNAVAILABLE
   */
  async ensureStored(type: StoredType, name: string, options: ChannelOptions = {}): Promise<StoredChannel> {
    const known = this.#stored[type].get(name)
    if (known) return known
    const key = `${type} ${name}`
    const making = this.#making.get(key)
    if (making) return making
    const reserved = isReservedChannel(name)
    if (!reserved) this.#checkLimit()
    else this.#reservedMaking++
    const made = this.#connection.call(() => this.#make(type, name, options))
    this.#making.set(key, made)
    try {
      return await made
    } finally {
      this.#making.delete(key)
      if (reserved) this.#reservedMaking--
    }
  }

  byStream(stream: string): StoredChannel | undefined {
    return [...this.allStored('queues'), ...this.allStored('events_store')].find((channel) => channel.stream === stream)
  }

  /** True when {@link ensureStored} would make it, or is just making it. */
  isMissing(type: StoredType, name: string): boolean {
    return !this.#stored[type].has(name) && !this.#making.has(`${type} ${name}`)
  }

  async #make(type: StoredType, name: string, given: ChannelOptions): Promise<StoredChannel> {
    const incarnation = unique()
    const stream = this.#subjects.stream(type, name, incarnation)
    const options = optionsFrom(given)
    // The stream first: whoever sees the channel can use it. One that nobody points to is removed at some start.
    await this.#streams.create({ type, name, incarnation, stream, options, revision: 0 })
    const written = await this.#write(this.#subjects.channelKey(type, name), { type, name, incarnation, options })
    if (typeof written === 'number') {
      const channel = { type, name, incarnation, stream, options, revision: written }
      this.#take(channel)
      return channel
    }
    await this.#streams.remove(stream)
    this.#take(written)
    return written
  }

  /** The revision of what was written, or the channel that was there before. */
  async #write(key: string, content: unknown): Promise<number | StoredChannel> {
    const subject = `$KV.${this.#subjects.channelBucket}.${key}`
    for (let expected = 0, tries = 0; tries < 5; tries++) {
      const revision = await this.#claim(subject, content, expected)
      if (revision !== undefined) return revision
      const last = await this.#messages.get(`KV_${this.#subjects.channelBucket}`, { last_by_subj: subject })
      const winner = last && this.#parse(Buffer.from(last.data).toString(), last.sequence)
      if (winner) return winner
      // Deleted before: its marker is what comes last.
      expected = last?.sequence ?? 0
    }
    throw unavailable('the channel comes and goes')
  }

  /** Undefined when somebody else wrote first. */
  async #claim(subject: string, content: unknown, expected: number): Promise<number | undefined> {
    const options = { messageId: claimOf(subject, expected), expectLastOfSubject: expected }
    try {
      const payload = Buffer.from(JSON.stringify(content))
      const { sequence, duplicate } = await this.#publisher.publish(subject, payload, options, (error) =>
        isApiError(error, API.WRONG_LAST_SEQUENCE) ? error : undefined,
      )
      return duplicate ? undefined : sequence
    } catch (error) {
      if (isApiError(error, API.WRONG_LAST_SEQUENCE)) return undefined
      throw error
    }
  }

  /** Other options for a channel that exists. */
  async update(channel: StoredChannel, given: ChannelOptions): Promise<StoredChannel> {
    const options = optionsFrom({ ...channel.options, ...given })
    if (JSON.stringify(options) === JSON.stringify(channel.options)) return channel
    const { type, name, incarnation, stream } = channel
    const changed = { type, name, incarnation, stream, options, revision: channel.revision }
    await this.#connection.call(() => this.#streams.update(changed))
    const subject = `$KV.${this.#subjects.channelBucket}.${this.#subjects.channelKey(type, name)}`
    const revision = await this.#claim(subject, { type, name, incarnation, options }, channel.revision)
    // Somebody else changed them at the same time; what they wrote comes by the watch.
    if (revision === undefined) return channel
    const stored = { ...changed, revision }
    this.#take(stored)
    return stored
  }

  async deleteStored(type: StoredType, name: string): Promise<StoredChannel | undefined> {
    const channel = this.#stored[type].get(name)
    if (!channel) return undefined
    await this.#connection.call(async () => {
      await this.#kv?.purge(this.#subjects.channelKey(type, name))
      this.#forget(channel)
      await this.#streams.remove(channel.stream)
    })
    return channel
  }

  /**
   * After the servers said that a channel's stream is gone: waits for what the bucket says. A channel whose stream
   * somebody removed by hand is removed as well.
   */
  async settle(type: StoredType, name: string, channel: StoredChannel): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      if (this.#stored[type].get(name)?.incarnation !== channel.incarnation) return
      await pause(50)
    }
    if (!(await this.#streams.exists(channel.stream))) await this.deleteStored(type, name)
  }

  hasLive(type: LiveType, name: string): boolean {
    return this.#live[type].has(name)
  }

  allLive(type: LiveType): string[] {
    return [...this.#live[type].keys()]
  }

  /** @throws BrokerError CHANNEL_LIMIT */
  ensureLive(type: LiveType, name: string): void {
    const known = this.#live[type].get(name)
    if (known) {
      known.usedAt = Date.now()
      return
    }
    if (!isReservedChannel(name)) this.#checkLimit()
    this.#addLive(type, name)
    this.#announce({ type, name, exists: true })
  }

  removeLive(type: LiveType, name: string): boolean {
    if (!this.#dropLive(type, name)) return false
    this.#announce({ type, name, exists: false })
    return true
  }

  /** Another node told. */
  hear({ type, name, exists }: LiveChange): void {
    if (!exists) this.#dropLive(type, name)
    else if (!this.#live[type].has(name)) this.#addLive(type, name)
  }

  get liveChannels(): readonly LiveChange[] {
    return (['events', 'commands', 'queries'] as const).flatMap((type) =>
      this.allLive(type).map((name) => ({ type, name, exists: true })),
    )
  }

  #addLive(type: LiveType, name: string): void {
    this.#live[type].set(name, { usedAt: Date.now() })
    if (!isReservedChannel(name)) this.#userChannels++
  }

  #dropLive(type: LiveType, name: string): boolean {
    if (!this.#live[type].delete(name)) return false
    if (!isReservedChannel(name)) this.#userChannels--
    return true
  }

  /** Forgets the broker's own channels in memory that are idle, as far as this node knows. */
  forgetIdleReserved(isUsed: (type: LiveType, name: string) => boolean): void {
    const before = Date.now() - RESERVED_IDLE_MS
    for (const type of ['events', 'commands', 'queries'] as const) {
      for (const [name, channel] of this.#live[type]) {
        if (!isReservedChannel(name) || channel.usedAt > before) continue
        if (isUsed(type, name)) channel.usedAt = Date.now()
        else this.#dropLive(type, name)
      }
    }
  }

  /** @throws BrokerError CHANNEL_LIMIT */
  #checkLimit(): void {
    const limit = this.#settings.maxChannels
    if (this.#userChannels + this.#making.size - this.#reservedMaking < limit) return
    throw new BrokerError(
      'CHANNEL_LIMIT',
      `the limit of ${limit} channels is reached; delete some, or raise the limit`,
      { limit },
    )
  }

  /** Channels of all types, the broker's own not counted. */
  get userChannels(): number {
    return this.#userChannels
  }

  stop(): void {
    this.#watch?.stop()
    this.#listeners.clear()
  }
}

/** -1 stands for what the channel itself does not say: the engine's own setting holds then. */
function optionsFrom(value: unknown): Required<ChannelOptions> {
  const given = new Map<string, unknown>(Object.entries(value ?? {}))
  const number = (name: string): number => {
    const found = given.get(name)
    return typeof found === 'number' ? found : -1
  }
  return { compacted: given.get('compacted') === true, maxAgeMs: number('maxAgeMs'), maxBytes: number('maxBytes') }
}
