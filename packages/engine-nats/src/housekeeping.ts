import { messageOf } from '@signalbox/broker-core/internal'
import type { StreamInfo } from '@nats-io/jetstream'

import { ownerIn } from './channels/stored-channel.ts'
import type { StoredChannels } from './channels/stored-channels.ts'
import type { NatsEngineProblem } from './options.ts'
import type { Streams } from './streams.ts'

/** A stream without a channel may be one that is just being made, for this long, in milliseconds. */
const STRAY_MS = 60_000

/**
 * Brings streams up to date with the settings when a node starts, and removes those that no channel points to: what a
 * node left that died while it made or deleted one.
 */
export class Housekeeping {
  readonly #streams: Streams
  readonly #channels: StoredChannels
  readonly #onProblem: (problem: NatsEngineProblem) => void
  /** When this node first saw each stream without a channel. */
  #strays = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(streams: Streams, channels: StoredChannels, onProblem: (problem: NatsEngineProblem) => void) {
    this.#streams = streams
    this.#channels = channels
    this.#onProblem = onProblem
  }

  /** Looks now, and once more when strays were among them. */
  start(): void {
    this.stop()
    this.#lookInBackground(() => {
      if (this.#strays.size === 0) return
      this.#timer = setTimeout(() => this.#lookInBackground(), STRAY_MS).unref()
    })
  }

  #lookInBackground(then: () => void = () => {}): void {
    this.look(Date.now())
      .then(then)
      .catch((error: unknown) => {
        this.#onProblem({ kind: 'failed', message: `tidying the streams: ${messageOf(error)}`, error })
      })
  }

  /**
   * A stream goes that was seen without a channel for a minute. Its age says nothing: servers list a stream that they
   * are just making as one of the year 1.
   */
  async look(now: number): Promise<void> {
    const strays = new Map<string, number>()
    for await (const info of this.#streams.own()) {
      const channel = this.#channels.byStream(info.config.name)
      if (channel) {
        await this.#streams.adjust(channel, info.config)
        continue
      }
      const since = this.#strays.get(info.config.name) ?? now
      if (now - since < STRAY_MS) strays.set(info.config.name, since)
      else if (await this.#isLeft(info)) await this.#streams.remove(info.config.name)
    }
    this.#strays = strays
  }

  /** Asks the bucket itself: what this node does not know may be there all the same. */
  async #isLeft({ config }: StreamInfo): Promise<boolean> {
    const owner = ownerIn(config.description ?? '')
    if (owner === undefined) return false
    const channel = await this.#channels.read(owner.type, owner.name)
    // An entry that was garbled may have pointed to it.
    return channel !== 'unreadable' && channel?.stream !== config.name
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
