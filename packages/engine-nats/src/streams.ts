import type { GroupSettings, SettingsTable } from '@signalbox/broker-core/engine'
import { deduplicationMsOf, groupLimitOf, retentionOf } from '@signalbox/broker-core/engine'
import type { ConsumerConfig, StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { AckPolicy, DeliverPolicy, DiscardPolicy, RetentionPolicy, StorageType } from '@nats-io/jetstream'
import { setTimeout as pause } from 'node:timers/promises'

import type { StoredChannel } from './channels/channel-bucket.ts'
import { describeOwner, ownerIn } from './channels/channel-bucket.ts'
import type { Connection } from './connection.ts'
import { API, isApiError } from './errors.ts'
import type { Settings } from './options.ts'
import type { ServerFeatures } from './servers.ts'
import type { Subjects } from './subjects.ts'

/** The durable consumer of a queue, which all nodes share; of a queue with groups, for messages without a group. */
export const QUEUE_CONSUMER = 'receivers'

/** The partitions that the groups of a queue share, each with its own consumer. */
export const GROUP_PARTITIONS = 16

/** Returns the name of the consumer of a partition, or of the messages without one. */
export function consumerOf(partition: number | undefined): string {
  return partition === undefined ? QUEUE_CONSUMER : `${QUEUE_CONSUMER}-${partition}`
}

export const PARTITIONS: readonly number[] = Array.from({ length: GROUP_PARTITIONS }, (_, partition) => partition)

/** The maximum number of delayed messages in one queue; {@link MAX_LEASED} limits the leases. */
export const MAX_DELAYED = 100_000
const MAX_LEASED = 50_000

const NANOS = 1_000_000

/** The parts of a stream's configuration that follow the settings. */
const ADJUSTED = [
  'description',
  'max_msgs',
  'max_bytes',
  'max_age',
  'max_msgs_per_subject',
  'duplicate_window',
  'allow_msg_ttl',
  'allow_direct',
] as const

/**
 * The number of tries to create a stream and its consumer, and the increase of the pause between tries, in
 * milliseconds.
 */
const CREATE_TRIES = 4
const CREATE_PAUSE_MS = 50

/**
 * Streams of stored channels: a work queue with one consumer for a queue, a plain stream for an events
 * store.
 */
export class Streams {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #settings: Settings
  readonly #channelSettings: SettingsTable
  readonly #features: ServerFeatures
  /** The queues whose streams have higher limits than the settings. */
  readonly #looser = new Set<string>()

  constructor(
    connection: Connection,
    subjects: Subjects,
    settings: Settings,
    channelSettings: SettingsTable,
    features: ServerFeatures,
  ) {
    this.#connection = connection
    this.#subjects = subjects
    this.#settings = settings
    this.#channelSettings = channelSettings
    this.#features = features
  }

  async create(channel: StoredChannel): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#create(channel)
        return
      } catch (error) {
        // Servers of a cluster may report a new stream before all of them know it.
        if (tries === CREATE_TRIES || !isApiError(error, API.STREAM_NOT_FOUND)) throw error
        await pause(CREATE_PAUSE_MS * tries)
      }
    }
  }

  async #create(channel: StoredChannel): Promise<void> {
    const { streams } = this.#connection.manager
    await streams.add({
      name: channel.stream,
      subjects: [this.#subjects.all(channel.incarnation)],
      storage: StorageType.File,
      num_replicas: this.#settings.replicas,
      retention: channel.type === 'queues' ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
      ...this.#limits(channel),
      allow_direct: isDirect(this.#settings.replicas),
    })
    if (channel.type !== 'queues') return
    const groups = this.groupsOf(channel)
    await this.#addConsumer(channel, undefined, groups)
    if (groups) await this.#addPartitions(channel, groups)
  }

  /** Returns the groups of a queue in the settings of channels; undefined if it has none. */
  groupsOf({ type, name }: StoredChannel): GroupSettings | undefined {
    return type === 'queues' ? this.#channelSettings.of('queues', name).groups : undefined
  }

  /** Creates a consumer of a queue, or adjusts it. */
  async #addConsumer(
    { stream, incarnation }: StoredChannel,
    partition: number | undefined,
    groups: GroupSettings | undefined,
  ): Promise<void> {
    const limit = groups ? groupLimitOf(groups, partition === undefined ? '' : String(partition)) : Infinity
    const filter: Partial<ConsumerConfig> = groups
      ? { filter_subject: this.#subjects.partition(incarnation, partition) }
      : {}
    await this.#connection.manager.consumers.add(stream, {
      durable_name: consumerOf(partition),
      ack_policy: AckPolicy.Explicit,
      ack_wait: this.#settings.ackWaitMs * NANOS,
      deliver_policy: DeliverPolicy.All,
      max_ack_pending: Math.min(limit, MAX_DELAYED + MAX_LEASED),
      max_deliver: -1,
      max_waiting: 10_000,
      ...filter,
    })
  }

  async #addPartitions(channel: StoredChannel, groups: GroupSettings): Promise<void> {
    await Promise.all(PARTITIONS.map((partition) => this.#addConsumer(channel, partition, groups)))
  }

  /**
   * Gives a queue the consumers that its groups need. The filters of consumers must not overlap at any time.
   * @param consumers The number of its consumers
   */
  async regroup(channel: StoredChannel, consumers: number): Promise<void> {
    const groups = this.groupsOf(channel)
    if (!groups && consumers <= 1) return
    if (!groups) {
      const { manager } = this.#connection
      const removed = PARTITIONS.map((partition) => manager.consumers.delete(channel.stream, consumerOf(partition)))
      // Another node may remove them at the same time.
      await Promise.allSettled(removed)
    }
    await this.#addConsumer(channel, undefined, groups)
    if (groups) await this.#addPartitions(channel, groups)
  }

  /** The settings of the channel win over its options, and those over the limits of the server. */
  #limits(channel: StoredChannel): Partial<StreamConfig> {
    const { queueMaxMessages, queueMaxBytes, eventsStoreMaxAgeMs, eventsStoreMaxBytes } = this.#settings
    const { type, name } = channel
    const settings = this.#channelSettings.of(type, name)
    const retention = retentionOf(this.#channelSettings, type, name)
    const window = deduplicationMsOf(this.#channelSettings, type, name)
    const description = describeOwner(type, name, (retention ?? settings.deduplication) !== undefined)
    if (type === 'queues') {
      return {
        description,
        discard: DiscardPolicy.New,
        max_msgs: (retention?.max_messages ?? queueMaxMessages) || -1,
        max_bytes: (retention?.max_bytes ?? queueMaxBytes) || -1,
        duplicate_window: window * NANOS,
        // Never false: servers cannot disable it on an existing stream.
        ...(this.#features.messageTtl && { allow_msg_ttl: true }),
      }
    }
    const { compacted, maxAgeMs, maxBytes } = channel.options
    const [ageOption, bytesOption] = [
      maxAgeMs === -1 ? eventsStoreMaxAgeMs : maxAgeMs,
      maxBytes === -1 ? eventsStoreMaxBytes : maxBytes,
    ]
    const ageSeconds = retention?.max_age_seconds
    const age = ageSeconds === undefined ? ageOption : ageSeconds * 1_000
    return {
      description,
      discard: DiscardPolicy.Old,
      max_age: age * NANOS,
      max_bytes: (retention?.max_bytes ?? bytesOption) || -1,
      max_msgs_per_subject: compacted ? 1 : -1,
      // Servers accept no window that is longer than the maximum age.
      duplicate_window: (age === 0 ? window : Math.max(100, Math.min(window, age))) * NANOS,
    }
  }

  async update(channel: StoredChannel): Promise<void> {
    await this.#connection.manager.streams.update(channel.stream, this.#limits(channel))
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async exists(stream: string): Promise<boolean> {
    return this.#connection.call(async () => {
      try {
        await this.#connection.manager.streams.info(stream)
        return true
      } catch (error) {
        if (isApiError(error, API.STREAM_NOT_FOUND)) return false
        throw error
      }
    })
  }

  async remove(stream: string): Promise<void> {
    try {
      await this.#connection.manager.streams.delete(stream)
    } catch (error) {
      if (!isApiError(error, API.STREAM_NOT_FOUND)) throw error
    }
  }

  /** Lists the streams of this broker's channels, including streams without a channel. */
  async *own(): AsyncGenerator<StreamInfo> {
    const own = [`${this.#subjects.prefix}-q-`, `${this.#subjects.prefix}-l-`]
    for await (const info of this.#connection.manager.streams.list()) {
      if (own.some((start) => info.config.name.startsWith(start))) yield info
    }
  }

  /** Adjusts a stream to the settings. */
  async adjust(channel: StoredChannel, config: StreamConfig): Promise<void> {
    // Until this node knows the settings, the limits of the server could remove what the settings keep.
    if (!this.#channelSettings.known && ownerIn(config.description ?? '')?.bySettings === true) return
    const limits = {
      ...this.#limits(channel),
      ...this.#keptLimits(channel, config),
      allow_direct: isDirect(config.num_replicas),
    }
    if (ADJUSTED.every((name) => limits[name] === undefined || limits[name] === config[name])) return
    await this.#connection.manager.streams.update(channel.stream, limits)
  }

  /** Returns the limits of a queue's stream that cannot be lowered, because the server would remove its first messages. */
  #keptLimits(channel: StoredChannel, config: StreamConfig): Partial<StreamConfig> {
    this.#looser.delete(channel.incarnation)
    if (channel.type !== 'queues' || this.#features.keepsOverLimit) return {}
    const wanted = this.#limits(channel)
    const kept = QUEUE_LIMITS.filter((name) => countOf(wanted[name]) < countOf(config[name]))
    if (kept.length > 0) this.#looser.add(channel.incarnation)
    return Object.fromEntries(kept.map((name) => [name, config[name]]))
  }

  /** Returns whether the servers accept more messages in a queue than the settings allow. */
  isLooser({ incarnation }: StoredChannel): boolean {
    return this.#looser.has(incarnation)
  }
}

const QUEUE_LIMITS = ['max_msgs', 'max_bytes'] as const

/** Returns whether a stream may answer reads directly: any of its replicas does, and one may not have the last messages. */
function isDirect(replicas: number): boolean {
  return replicas === 1
}

/** Servers write an unlimited number as -1. */
function countOf(limit = -1): number {
  return limit <= 0 ? Infinity : limit
}
