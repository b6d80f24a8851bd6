import { BrokerError } from '@signalbox/broker-core/engine'

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
