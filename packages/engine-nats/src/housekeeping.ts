import type { StreamInfo } from '@nats-io/jetstream'

import { ownerIn } from './channels/channel-bucket.ts'
import type { StoredChannels } from './channels/stored-channels.ts'
import type { NatsEngineProblem } from './options.ts'
import { failure } from './problems.ts'
import type { Streams } from './streams.ts'

/** The time for which a stream without a channel may be one that is being created, in milliseconds. */
const STRAY_MS = 60_000

/**
 * Adjusts streams to the settings when a node starts, and removes streams without a channel: a node left
 * them that died while it created or deleted one.
 */
export class Housekeeping {
  readonly #streams: Streams
  readonly #channels: StoredChannels
  readonly #onProblem: (problem: NatsEngineProblem) => void
  /** The time when this node first saw each stream without a channel. */
  #strays = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(streams: Streams, channels: StoredChannels, onProblem: (problem: NatsEngineProblem) => void) {
    this.#streams = streams
    this.#channels = channels
    this.#onProblem = onProblem
  }

  /** Checks now, and once more later if there were streams without a channel. */
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

  stop(): void {
    clearTimeout(this.#timer)
  }
}
