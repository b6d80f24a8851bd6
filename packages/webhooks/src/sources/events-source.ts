import type { BrokerHandle } from '@signalbox/broker-core'
import { keepSubscribed } from '@signalbox/broker-core/internal'

import { ItemBuffer } from './item-buffer.ts'
import type { Item, Source } from './source.ts'

/** The most events, and the most bytes, that wait for an endpoint. Events are not stored: later ones are dropped. */
const WAITING_ITEMS = 1_000
const WAITING_BYTES = 8 * 1024 * 1024

/** The most bytes in one delivery. */
const DELIVERY_BYTES = 1024 * 1024

export interface EventsSourceOptions {
  readonly signal: AbortSignal
  /** Receives failures; the source continues after them. */
  readonly failed: (error: unknown) => void
  /** Called for each event that is dropped because too many wait. */
  readonly dropped: () => void
}

/** The events of a channel while the subscription is served. An event is lost when its node stops. */
export class EventsSource implements Source {
  readonly #buffer: ItemBuffer
  readonly #following: Promise<void>

  constructor(system: BrokerHandle, channel: string, options: EventsSourceOptions) {
    this.#buffer = new ItemBuffer(WAITING_ITEMS, WAITING_BYTES, options.signal)
    const { signal, failed, dropped } = options
    const subscribe = () =>
      system.events.subscribe(channel, { signal }, (message) => {
        if (this.#buffer.full) dropped()
        else this.#buffer.push({ message, sequence: 0, receipt: '', name: message.id })
      })
    this.#following = keepSubscribed(subscribe, { signal, failed })
  }

  take(max: number): readonly Item[] | Promise<readonly Item[]> {
    return this.#buffer.take(max, DELIVERY_BYTES)
  }

  settle(): undefined {}

  async keep(): Promise<boolean> {
    return true
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    await this.#following
  }
}
