import { channelNameProblem } from '@signalbox/broker-core'
import type { ChannelOptions, StoredType } from '@signalbox/broker-core/engine'
import { unavailable } from '@signalbox/broker-core/engine'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import type { KV } from '@nats-io/kv'
import { Kvm } from '@nats-io/kv'
import { Type } from 'typebox'
import { Buffer } from 'node:buffer'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from '../connection.ts'
import { sharedSetUp } from '../connection.ts'
import { isWrongSequence } from '../errors.ts'
import { jsonOf } from '../json.ts'
import type { Received } from '../large/thread-calls.ts'
import type { Settings } from '../options.ts'
import { ReportOnce } from '../problems.ts'
import type { Publisher } from '../publisher.ts'
import { claimOf } from '../publisher.ts'
import type { Pulls } from '../pulls.ts'
import { parseAckSubject } from '../pulls.ts'
import type { StoredMessages } from '../stored-messages.ts'
import type { Subjects } from '../subjects.ts'
import { unique } from '../subjects.ts'

/** An entry of the bucket that was written or removed. */
export type ChannelNews =
  | { readonly channel: StoredChannel }
  | { readonly gone: { readonly type: StoredType; readonly name: string; readonly revision: number } }

/** A bucket that is being followed. */
export interface Following {
  /** Resolves with true when all present entries have been reported; with false if following ended before. */
  readonly caughtUp: Promise<boolean>
  /** Resolves when following was stopped or the servers lost the consumer. Never rejects. */
  readonly ended: Promise<void>
  stop(): void
}

/** The maximum number of entries in one request. */
const BATCH = 256
const PULL_MS = 30_000
/**
 * The time after which the servers remove the consumer of a node that died or that does not know of it, in
 * milliseconds.
 */
const FORGOTTEN_MS = 60_000
/** The pause before a lost consumer is replaced, so that repeated losses do not overload the servers. */
const AGAIN_MS = 1_000
const NANOS = 1_000_000

const WRITE_TRIES = 5

/**
 * The key-value bucket with an entry for each stored channel. When several nodes write a name at once, one
 * succeeds.
 */
export class ChannelBucket {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #publisher: Publisher
  readonly #messages: StoredMessages
  readonly #pulls: Pulls
  readonly #kv: KV
  readonly #unreadable: ReportOnce

  private constructor(
    kv: KV,
    connection: Connection,
    subjects: Subjects,
    publisher: Publisher,
    messages: StoredMessages,
    pulls: Pulls,
    { onProblem }: Settings,
  ) {
    this.#unreadable = new ReportOnce(onProblem)
    this.#kv = kv
    this.#connection = connection
    this.#subjects = subjects
    this.#publisher = publisher
    this.#messages = messages
    this.#pulls = pulls
  }

  static async open(
    connection: Connection,
    subjects: Subjects,
    publisher: Publisher,
    messages: StoredMessages,
    pulls: Pulls,
    settings: Settings,
  ): Promise<ChannelBucket> {
    const kv = await sharedSetUp(() =>
      new Kvm(connection.client).create(subjects.channelBucket, { history: 1, replicas: settings.replicas }),
    )
    return new ChannelBucket(kv, connection, subjects, publisher, messages, pulls, settings)
  }

  #subject(type: StoredType, name: string): string {
    return `$KV.${this.#subjects.channelBucket}.${this.#subjects.channelKey(type, name)}`
  }

  get #stream(): string {
    return `KV_${this.#subjects.channelBucket}`
  }

  /**
   * Reports the present entries, and then each change, until the servers lose the consumer. Does not use the
   * client's own watch: during elections that creates consumers faster than the servers remove them,
   * hundreds within minutes, and newer servers then refuse any other consumer.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async follow(notify: (news: ChannelNews) => void): Promise<Following> {
    const { consumer, pending } = await this.#makeConsumer()
    const caughtUp = Promise.withResolvers<boolean>()
    const stopping = new AbortController()
    const { signal } = stopping
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
    })
    if (pending === 0) caughtUp.resolve(true)
    let deliveries = 0
    let missed = false
    const hear = (message: Received): void => {
      const ack = parseAckSubject(message.reply ?? '')
      if (signal.aborted || ack === undefined) return
      if (ack.delivery !== ++deliveries) {
        missed = true
        caughtUp.resolve(false)
      }
      const news = this.#news(message, ack.sequence)
      if (news) notify(news)
      if (ack.pending === 0) caughtUp.resolve(true)
    }
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        const pulling = this.#pulls.pull(this.#stream, consumer, { batch: BATCH, waitMs: PULL_MS }, hear)
        const end = await Promise.race([pulling, stopped])
        if (end === 'gone' || end === 'lost' || missed) break
      }
      caughtUp.resolve(false)
      this.#drop(consumer)
      await pause(AGAIN_MS, undefined, { signal, ref: false }).catch(() => {})
    }
    return { caughtUp: caughtUp.promise, ended: run(), stop: () => stopping.abort() }
  }

  async #makeConsumer(): Promise<{ readonly consumer: string; readonly pending: number }> {
    const consumer = `b-${unique()}`
    const { num_pending: pending } = await this.#connection.call(() =>
      this.#connection.manager.consumers.add(this.#stream, {
        name: consumer,
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.LastPerSubject,
        filter_subject: `$KV.${this.#subjects.channelBucket}.>`,
        inactive_threshold: FORGOTTEN_MS * NANOS,
        mem_storage: true,
        num_replicas: 1,
      }),
    )
    return { consumer, pending }
  }

  #drop(consumer: string): void {
    if (!this.#connection.connected) return
    // If this fails, the servers remove the consumer after FORGOTTEN_MS.
    this.#connection.manager.consumers.delete(this.#stream, consumer).catch(() => {})
  }

  #news({ subject, data, headers }: Received, revision: number): ChannelNews | undefined {
    const key = subject.slice(`$KV.${this.#subjects.channelBucket}.`.length)
    if (!headers?.has('KV-Operation')) {
      const channel = this.#read(key, data, revision)
      return channel && { channel }
    }
    this.#unreadable.over(key)
    const [type, encoded = ''] = key.split('.')
    if (!isStoredType(type)) return undefined
    return { gone: { type, name: Buffer.from(encoded, 'base64url').toString(), revision } }
  }

  /**
   * Reads an entry. Returns undefined for an entry that no node wrote: it is reported, and the known state
   * of the channel is kept.
   */
  #read(key: string, data: Uint8Array, revision: number): StoredChannel | undefined {
    const channel = channelFrom(this.#subjects, key, Buffer.from(data).toString(), revision)
    if (channel) this.#unreadable.over(key)
    else {
      const bucket = this.#subjects.channelBucket
      this.#unreadable.report(
        key,
        `the entry ${JSON.stringify(key.slice(0, 400))} of the bucket ${bucket} cannot be read and is ignored; restore it, or remove it with its channel (nats kv del)`,
      )
    }
    return channel
  }

  /**
   * Reads a channel from the servers; `unreadable` if its entry is not valid.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async read(type: StoredType, name: string): Promise<StoredChannel | 'unreadable' | undefined> {
    return (await this.#last(type, name))?.channel
  }

  async #last(
    type: StoredType,
    name: string,
  ): Promise<{ channel: StoredChannel | 'unreadable' | undefined; revision: number } | undefined> {
    const query = { last_by_subj: this.#subject(type, name) }
    const last = await this.#messages.get(this.#stream, query)
    if (!last) return undefined
    const revision = last.sequence
    // The marker of a deleted channel is empty.
    if (last.data.byteLength === 0) return { channel: undefined, revision }
    return { channel: this.#read(this.#subjects.channelKey(type, name), last.data, revision) ?? 'unreadable', revision }
  }

  /**
   * Adds a channel. Resolves with the written channel, or with the one that exists already; `unreadable` if
   * its entry is not valid. Such an entry is not overwritten, because the stream that it named may hold
   * messages.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async add(channel: StoredChannel): Promise<StoredChannel | 'unreadable'> {
    for (let expected = 0, tries = 0; tries < WRITE_TRIES; tries++) {
      const written = await this.replace(channel, expected)
      if (written) return written
      const last = await this.#last(channel.type, channel.name)
      if (last?.channel) return last.channel
      // The channel was deleted before: its marker is the last entry.
      expected = last?.revision ?? 0
    }
    throw unavailable('other nodes create and delete the channel at the same time')
  }

  /**
   * Replaces an entry. Resolves with the written channel; with undefined if the entry has another revision
   * by now.
   */
  async replace(channel: StoredChannel, expected = channel.revision): Promise<StoredChannel | undefined> {
    const subject = this.#subject(channel.type, channel.name)
    const options = { messageId: claimOf(subject, expected), expectLastOfSubject: expected }
    try {
      const payload = Buffer.from(contentOf(channel))
      const { sequence, duplicate } = await this.#publisher.publish(subject, payload, options, (error) =>
        isWrongSequence(error) ? error : undefined,
      )
      return duplicate ? undefined : { ...channel, revision: sequence }
    } catch (error) {
      if (isWrongSequence(error)) return undefined
      throw error
    }
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async remove(type: StoredType, name: string): Promise<void> {
    await this.#connection.call(() => this.#kv.purge(this.#subjects.channelKey(type, name)))
  }
}

function isStoredType(type: unknown): type is StoredType {
  return type === 'queues' || type === 'events_store'
}

/** A channel whose messages are kept in its own stream. */
export interface StoredChannel {
  readonly type: StoredType
  readonly name: string
  /**
   * A random id of this channel. It changes when the channel is deleted and created again; also the key of
   * its counters.
   */
  readonly incarnation: string
  readonly stream: string
  readonly options: Readonly<Required<ChannelOptions>>
  readonly revision: number
}

const BOUND = Type.Optional(Type.Integer({ minimum: -1 }))

/**
 * An entry of the bucket. Unknown fields of later versions are ignored; the fields that identify the stream
 * are strict.
 */
const ENTRY = Type.Object({
  type: Type.Union([Type.Literal('queues'), Type.Literal('events_store')]),
  name: Type.String(),
  incarnation: Type.String({ pattern: '^[A-Za-z0-9_-]{16}$' }),
  options: Type.Optional(Type.Object({ compacted: Type.Optional(Type.Boolean()), maxAgeMs: BOUND, maxBytes: BOUND })),
})

/**
 * Parses an entry of the bucket. Returns undefined for an entry that no node of this broker wrote under that
 * key.
 */
export function channelFrom(
  subjects: Subjects,
  key: string,
  text: string,
  revision: number,
): StoredChannel | undefined {
  const entry = jsonOf(ENTRY, text)
  if (!entry) return undefined
  const { type, name, incarnation, options } = entry
  // The Broker's rule, except that empty parts between dots are allowed: for the engine they are a valid
  // name.
  if (channelNameProblem(name.replaceAll(/\.{2,}/g, '.')) !== undefined) return undefined
  if (subjects.channelKey(type, name) !== key) return undefined
  const stream = subjects.stream(type, name, incarnation)
  return { type, name, incarnation, stream, options: optionsFrom(options ?? {}), revision }
}

/** Serializes a channel for its entry in the bucket. */
function contentOf({ type, name, incarnation, options }: StoredChannel): string {
  return JSON.stringify({ type, name, incarnation, options })
}

/**
 * Fills in the options. -1 means that the channel does not set the value, so the engine's setting applies.
 */
export function optionsFrom({
  compacted = false,
  maxAgeMs = -1,
  maxBytes = -1,
}: ChannelOptions): Required<ChannelOptions> {
  return { compacted, maxAgeMs, maxBytes }
}

/** Returns a stream's description, which names the channel that it was created for. */
export function describeOwner(type: StoredType, name: string, bySettings = false): string {
  return `${type} ${JSON.stringify(name)}${bySettings ? BY_SETTINGS : ''}`
}

/** The end of the description of a stream whose limits come from the settings of its channel. */
const BY_SETTINGS = ' by settings'

/** Parses a description that {@link describeOwner} wrote. */
export function ownerIn(
  description: string,
): { readonly type: StoredType; readonly name: string; readonly bySettings: boolean } | undefined {
  const bySettings = description.endsWith(BY_SETTINGS)
  const owner = bySettings ? description.slice(0, -BY_SETTINGS.length) : description
  const [, type, json = ''] = /^(\w+) (".*")$/s.exec(owner) ?? []
  const name = jsonOf(Type.String(), json)
  return isStoredType(type) && name !== undefined ? { type, name, bySettings } : undefined
}
