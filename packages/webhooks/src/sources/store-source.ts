import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { keepSubscribed } from '@signalbox/broker-core/internal'

import { ItemBuffer } from './item-buffer.ts'
import { BUFFERED_BYTES, BUFFERED_ITEMS } from './limits.ts'
import type { Item, Source } from './source.ts'

/**
 * The entries of an events store from a position on, in order. The store keeps the entries that are not read yet, so a
 * slow endpoint needs no memory.
 */
export class StoreSource implements Source {
  readonly #buffer: ItemBuffer
  readonly #following: Promise<void>

  /** @param failed Receives failures; the source continues after them */
  constructor(
    system: BrokerHandle,
    channel: string,
    next: number,
    { signal, failed }: { readonly signal: AbortSignal; readonly failed: (error: unknown) => void },
  ) {
    this.#buffer = new ItemBuffer(BUFFERED_ITEMS, BUFFERED_BYTES, signal)
    let position = next
    const take = (message: StoredEvent): Promise<void> | undefined => {
      if (signal.aborted) return undefined
      // Lower than the last one if the channel was deleted and created again.
      position = message.sequence + 1
      // A deleted key has no message.
      if (message.tombstone) return undefined
      const { sequence } = message
      this.#buffer.push({ message, sequence, receipt: '', name: String(sequence) })
      return this.#buffer.full ? this.#buffer.hasRoom() : undefined
    }
    const subscribe = () =>
      system.eventsStore.subscribe(channel, { from: 'sequence', sequence: position }, { signal }, take)
    this.#following = keepSubscribed(subscribe, { signal, failed })
  }

  take(max: number): readonly Item[] | Promise<readonly Item[]> {
    return this.#buffer.take(max, BUFFERED_BYTES)
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
