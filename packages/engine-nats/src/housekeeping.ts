import type { SettingsTable } from '@signalbox/broker-core/engine'
import type { StreamInfo } from '@nats-io/jetstream'
import { setTimeout as pause } from 'node:timers/promises'

import { ownerIn } from './channels/channel-bucket.ts'
import type { StoredChannel } from './channels/channel-bucket.ts'
import type { StoredChannels } from './channels/stored-channels.ts'
import type { NatsEngineProblem } from './options.ts'
import { failure, runInBackground } from './problems.ts'
import type { QueueGauges } from './queues/queue-gauges.ts'
import type { Streams } from './streams.ts'

/** The time for which a stream without a channel may be one that is being created, in milliseconds. */
const STRAY_MS = 60_000
/** The settings that change streams and their consumers. */
const STREAM_SETTINGS = ['groups', 'retention', 'deduplication'] as const
/** The pause before a failed check is repeated, in milliseconds. */
const RETRY_MS = 5_000

/**
 * Adjusts streams to the settings, when a node starts and when they change, and removes streams without a channel: a
 * node left them that died while it created or deleted one.
 */
export class Housekeeping {
  readonly #streams: Streams
  readonly #channels: StoredChannels
  readonly #settings: SettingsTable
  readonly #gauges: QueueGauges
  readonly #onProblem: (problem: NatsEngineProblem) => void
  /** The time when this node first saw each stream without a channel. */
  #strays = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  readonly #stopping = new AbortController()
  readonly #unwatch: () => void
  /** `false` if the settings at the last check had no effect on streams. */
  #used = true
  #changed = false
  #adjusting = false
  /** The groups that this node gave queues, as JSON, by incarnation. */
  readonly #groups = new Map<string, string>()

  constructor(
    streams: Streams,
    channels: StoredChannels,
    settings: SettingsTable,
    gauges: QueueGauges,
    onProblem: (problem: NatsEngineProblem) => void,
  ) {
    this.#streams = streams
    this.#channels = channels
    this.#settings = settings
    this.#gauges = gauges
    this.#unwatch = settings.onChange(() => this.#settingsChanged())
    this.#onProblem = onProblem
  }

  /** Checks now, and once more later if there were streams without a channel. */
  start(): void {
    clearTimeout(this.#timer)
    this.#lookInBackground(() => {
      if (this.#strays.size === 0) return
      this.#timer = setTimeout(() => this.#lookInBackground(), STRAY_MS).unref()
    })
  }

  #settingsChanged(): void {
    const used = STREAM_SETTINGS.some((member) => this.#settings.uses(member))
    const isFor = used || this.#used
    this.#used = used
    if (!isFor) return
    this.#changed = true
    if (!this.#adjusting) runInBackground(this.#onProblem, 'adjusting streams to the settings', this.#adjustAll())
  }

  /** Checks all streams, and again if the settings change meanwhile or the servers do not answer. */
  async #adjustAll(): Promise<void> {
    const { signal } = this.#stopping
    this.#adjusting = true
    while (this.#changed && !signal.aborted) {
      this.#changed = false
      try {
        await this.look(Date.now())
      } catch (error) {
        if (signal.aborted) break
        this.#onProblem(failure('adjusting streams to the settings', error))
        this.#changed = true
        await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
      }
    }
    this.#adjusting = false
  }

  #lookInBackground(then: () => void = () => {}): void {
    this.look(Date.now())
      .then(then)
      .catch((error: unknown) => this.#onProblem(failure('checking the streams', error)))
  }

  /**
   * Removes the streams that have had no channel for a minute. A stream's age is not used, because servers
   * list a stream that is being created with a date in the year 1.
   */
  async look(now: number): Promise<void> {
    const strays = new Map<string, number>()
    for await (const info of this.#streams.own()) {
      const channel = this.#channels.byStream(info.config.name)
      if (channel) {
        await this.#streams.adjust(channel, info.config)
        if (channel.type === 'queues') {
          await this.#regroup(channel, info.state.consumer_count)
          this.#gauges.seen(channel, info.state)
        }
        continue
      }
      const since = this.#strays.get(info.config.name) ?? now
      if (now - since < STRAY_MS) strays.set(info.config.name, since)
      else if (await this.#isLeft(info)) await this.#streams.remove(info.config.name)
    }
    this.#strays = strays
  }

  /** Asks the bucket itself, which may know a channel that this node does not know. */
  async #isLeft({ config }: StreamInfo): Promise<boolean> {
    const owner = ownerIn(config.description ?? '')
    if (owner === undefined) return false
    const channel = await this.#channels.read(owner.type, owner.name)
    // An unreadable entry may have named this stream.
    return channel !== 'unreadable' && channel?.stream !== config.name
  }

  /** Gives a queue the consumers that its groups need, if those changed. */
  async #regroup(channel: StoredChannel, consumers: number): Promise<void> {
    // Until a node has read the settings, it does not know the groups.
    if (!this.#settings.known) return
    const groups = JSON.stringify(this.#streams.groupsOf(channel)) ?? ''
    if (this.#groups.get(channel.incarnation) === groups) return
    await this.#streams.regroup(channel, consumers)
    this.#groups.set(channel.incarnation, groups)
  }

  stop(): void {
    this.#unwatch()
    this.#stopping.abort()
    clearTimeout(this.#timer)
  }
}
