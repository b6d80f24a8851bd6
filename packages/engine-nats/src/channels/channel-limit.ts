import { BrokerError } from '@signalbox/broker-core/engine'

/** Nodes that reach the limit at the same moment each make some: so many more are taken from others. */
const OVERSHOOT = 100

/** How many channels of all types there are, and that they are not too many (C4). The broker's own do not count. */
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

  /** Whether one that another node announced is taken. */
  get hasRoomForAnnounced(): boolean {
    return this.#channels < this.#limit + OVERSHOOT
  }

  /** Counts a channel while it is made. @throws BrokerError CHANNEL_LIMIT */
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
