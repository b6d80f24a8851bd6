import type { ChannelType } from '@signalbox/broker-core'
import type { SseStream } from '@signalbox/http-kit'
import { OpenStreams } from '@signalbox/http-kit/internal'

import { CeError } from '../errors.ts'

/** An open subscription, for operators. */
export interface SubscriptionInfo {
  readonly type: Exclude<ChannelType, 'queues'>
  /** A channel, or a pattern of channels. */
  readonly channel: string
  readonly group: string | undefined
  /** The name that the subscriber gave itself. It grants no permission. */
  readonly clientId: string | undefined
  /** The verified ClientID. */
  readonly principal: string
  /** The time at which the subscription was opened, in ms since the epoch. */
  readonly since: number
}

/** The subscriptions of one connector: counts them, limits them, and ends them at shutdown. */
export class Subscriptions {
  readonly #limit: number
  readonly #streams: OpenStreams
  readonly #open = new Set<SubscriptionInfo>()
  /** Subscriptions that are being opened. They count towards the limit. */
  #opening = 0

  /** @param limit The most subscriptions that may be open at a time; 0 means no limit */
  constructor(limit: number) {
    this.#limit = limit
    this.#streams = new OpenStreams(limit)
  }

  get size(): number {
    return this.#streams.size
  }

  list(): readonly SubscriptionInfo[] {
    return [...this.#open]
  }

  /** Counts a subscription while `open` runs. @throws CeError STREAM_LIMIT, SHUTTING_DOWN */
  async opening<T>(account: string, open: () => Promise<T>): Promise<T> {
    if (!this.#streams.open) throw new CeError('SHUTTING_DOWN', 'the server is shutting down; try again')
    const limit = this.#limit
    if (limit > 0 && this.#streams.size + this.#opening >= limit) {
      throw new CeError('STREAM_LIMIT', `all ${limit} subscriptions are open; close one, or try again later`, { limit })
    }
    if (!this.#streams.hasRoomFor(account)) {
      const text = `half of the ${limit} subscriptions are this caller's; close one, or try again later`
      throw new CeError('STREAM_LIMIT', text, { limit })
    }
    this.#opening++
    try {
      return await open()
    } finally {
      this.#opening--
    }
  }

  add(stream: SseStream, info: SubscriptionInfo, account: string): void {
    this.#open.add(info)
    stream.onEnd(() => this.#open.delete(info))
    this.#streams.add(stream, account)
  }

  /** Ends every stream after its written events, and rejects new ones. Idempotent. */
  closeAll(): void {
    this.#streams.closeAll()
  }
}
