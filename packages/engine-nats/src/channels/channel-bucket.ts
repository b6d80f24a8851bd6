import { unavailable } from '@signalbox/broker-core/engine'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import type { KV } from '@nats-io/kv'
import { Kvm } from '@nats-io/kv'
import type { Msg } from '@nats-io/transport-node'
import { Buffer } from 'node:buffer'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from '../connection.ts'
import { isWrongSequence } from '../errors.ts'
import type { Settings } from '../options.ts'
import { claimOf } from '../publisher.ts'
import type { Publisher } from '../publisher.ts'
import type { Pulls } from '../pulls.ts'
import { parseAckSubject } from '../queues/ack-subject.ts'
import { ReportOnce } from '../report-once.ts'
import { sharedSetUp } from '../shared-set-up.ts'
import type { StoredMessages } from '../stored-messages.ts'
import type { Subjects } from '../subjects.ts'
import { unique } from '../subjects.ts'
import type { StoredChannel, StoredType } from './stored-channel.ts'
import { channelFrom, contentOf, isStoredType } from './stored-channel.ts'

/** What the bucket says of one name. */
export type ChannelNews =
  | { readonly channel: StoredChannel }
  | { readonly gone: { readonly type: StoredType; readonly name: string; readonly revision: number } }

/** A bucket that is being followed. */
export interface Following {
  /** True once everything that stood in the bucket was told; false when it ended before. */
  readonly caughtUp: Promise<boolean>
  /** It was stopped, or the servers lost it. Never rejects. */
  readonly ended: Promise<void>
  stop(): void
}

/** Entries fetched at once. */
const BATCH = 256
const PULL_MS = 30_000
/** The servers forget the consumer of a node that died, or that did not hear of it, after this long, in milliseconds. */
const FORGOTTEN_MS = 60_000
/** Before following anew what the servers lost, so that servers that lose it at once are not kept busy with it. */
const AGAIN_MS = 1_000
const NANOS = 1_000_000

const WRITE_TRIES = 5

/** The key-value bucket that names the stored channels; of several nodes that write a name at once one is first. */
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
   * Tells what stands in the bucket, and then what changes, until the servers lose the consumer. Not by the client's own
   * watch: while servers choose leaders that makes consumers faster than they forget them, hundreds in minutes, and newer
   * servers then refuse every other one.
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
    const hear = (message: Msg): void => {
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
    // If this fails the servers forget it by themselves.
    this.#connection.manager.consumers.delete(this.#stream, consumer).catch(() => {})
  }

  #news({ subject, data, headers }: Msg, revision: number): ChannelNews | undefined {
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

  /** Undefined for what no node wrote there. It is reported, and whatever is known of the channel stays as it is. */
  #read(key: string, data: Uint8Array, revision: number): StoredChannel | undefined {
    const channel = channelFrom(this.#subjects, key, Buffer.from(data).toString(), revision)
    if (channel) this.#unreadable.over(key)
    else {
      const bucket = this.#subjects.channelBucket
      this.#unreadable.report(
        key,
        `the entry ${JSON.stringify(key.slice(0, 400))} of the bucket ${bucket} cannot be read and is passed over; restore it, or remove it with its channel (nats kv del)`,
      )
    }
    return channel
  }

  /**
   * The channel of that name, asked of the servers; `unreadable` when something else stands there.
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
    // The marker of a deleted channel holds nothing.
    if (last.data.byteLength === 0) return { channel: undefined, revision }
    return { channel: this.#read(this.#subjects.channelKey(type, name), last.data, revision) ?? 'unreadable', revision }
  }

  /**
   * The channel as written, or the one that was there before; `unreadable` when something else stands there. That is not
   * written over: the stream that it named before may hold messages.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async add(channel: StoredChannel): Promise<StoredChannel | 'unreadable'> {
    for (let expected = 0, tries = 0; tries < WRITE_TRIES; tries++) {
      const written = await this.replace(channel, expected)
      if (written) return written
      const last = await this.#last(channel.type, channel.name)
      if (last?.channel) return last.channel
      // Deleted before: its marker is what comes last.
      expected = last?.revision ?? 0
    }
    throw unavailable('the channel comes and goes')
  }

  /** The channel as written; undefined when what stands there has another revision by now. */
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
