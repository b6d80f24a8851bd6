import { unavailable } from '@signalbox/broker-core'
import type { KV, KvEntry } from '@nats-io/kv'
import { Kvm } from '@nats-io/kv'
import { Buffer } from 'node:buffer'

import type { Connection } from '../connection.ts'
import { API, isApiError } from '../errors.ts'
import type { Settings } from '../options.ts'
import { claimOf } from '../publisher.ts'
import type { Publisher } from '../publisher.ts'
import type { StoredMessages } from '../stored-messages.ts'
import type { Subjects } from '../subjects.ts'
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
  /** It was stopped, or broke. */
  readonly ended: Promise<void>
  stop(): void
}

const WRITE_TRIES = 5

/** The key-value bucket that names the stored channels; of several nodes that write a name at once one is first. */
export class ChannelBucket {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #publisher: Publisher
  readonly #messages: StoredMessages
  readonly #kv: KV

  private constructor(
    kv: KV,
    connection: Connection,
    subjects: Subjects,
    publisher: Publisher,
    messages: StoredMessages,
  ) {
    this.#kv = kv
    this.#connection = connection
    this.#subjects = subjects
    this.#publisher = publisher
    this.#messages = messages
  }

  static async open(
    connection: Connection,
    subjects: Subjects,
    publisher: Publisher,
    messages: StoredMessages,
    { replicas }: Settings,
  ): Promise<ChannelBucket> {
    const kv = await new Kvm(connection.client).create(subjects.channelBucket, { history: 1, replicas })
    return new ChannelBucket(kv, connection, subjects, publisher, messages)
  }

  #subject(type: StoredType, name: string): string {
    return `$KV.${this.#subjects.channelBucket}.${this.#subjects.channelKey(type, name)}`
  }

  /** Tells what stands in the bucket, and then what changes. */
  async follow(tell: (news: ChannelNews) => void): Promise<Following> {
    const watch = await this.#kv.watch()
    const pending = (await this.#kv.status()).values
    const caughtUp = Promise.withResolvers<boolean>()
    if (pending === 0) caughtUp.resolve(true)
    const ended = (async () => {
      let count = 0
      try {
        for await (const entry of watch) {
          const news = this.#news(entry)
          if (news) tell(news)
          if (++count >= pending || entry.delta === 0) caughtUp.resolve(true)
        }
      } finally {
        caughtUp.resolve(false)
      }
    })()
    return { caughtUp: caughtUp.promise, ended, stop: () => watch.stop() }
  }

  #news(entry: KvEntry): ChannelNews | undefined {
    if (entry.operation === 'PUT') {
      const channel = channelFrom(this.#subjects, entry.string(), entry.revision)
      return channel && { channel }
    }
    const [type, encoded = ''] = entry.key.split('.')
    if (!isStoredType(type)) return undefined
    return { gone: { type, name: Buffer.from(encoded, 'base64url').toString(), revision: entry.revision } }
  }

  /** The channel of that name, asked of the servers. @throws BrokerError ENGINE_UNAVAILABLE */
  async read(type: StoredType, name: string): Promise<StoredChannel | undefined> {
    return (await this.#last(type, name))?.channel
  }

  async #last(
    type: StoredType,
    name: string,
  ): Promise<{ channel: StoredChannel | undefined; revision: number } | undefined> {
    const query = { last_by_subj: this.#subject(type, name) }
    const last = await this.#messages.get(`KV_${this.#subjects.channelBucket}`, query)
    if (!last) return undefined
    const revision = last.sequence
    return { channel: channelFrom(this.#subjects, Buffer.from(last.data).toString(), revision), revision }
  }

  /** The channel as written, or the one that was there before. @throws BrokerError ENGINE_UNAVAILABLE */
  async add(channel: StoredChannel): Promise<StoredChannel> {
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
        isApiError(error, API.WRONG_LAST_SEQUENCE) ? error : undefined,
      )
      return duplicate ? undefined : { ...channel, revision: sequence }
    } catch (error) {
      if (isApiError(error, API.WRONG_LAST_SEQUENCE)) return undefined
      throw error
    }
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async remove(type: StoredType, name: string): Promise<void> {
    await this.#connection.call(() => this.#kv.purge(this.#subjects.channelKey(type, name)))
  }
}
