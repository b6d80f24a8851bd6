import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle } from '@signalbox/broker-core'

import { ItemBuffer } from './item-buffer.ts'
import { BUFFERED_BYTES, BUFFERED_ITEMS, REOPEN_MS } from './limits.ts'
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
    this.#following = this.#follow(system, channel, next, signal, failed)
  }

  async #follow(
    system: BrokerHandle,
    channel: string,
    first: number,
    signal: AbortSignal,
    failed: (error: unknown) => void,
  ): Promise<void> {
    let next = first
    while (!signal.aborted) {
      try {
        const start = { from: 'sequence', sequence: next } as const
        const subscription = await system.eventsStore.subscribe(channel, start, { signal }, (message) => {
          if (signal.aborted) return undefined
          // Lower than the last one if the channel was deleted and created again.
          next = message.sequence + 1
          // A deleted key has no message.
          if (message.tombstone) return undefined
          const { sequence } = message
          this.#buffer.push({ message, sequence, receipt: '', name: String(sequence) })
          return this.#buffer.full ? this.#buffer.hasRoom() : undefined
        })
        const error = await subscription.closed
        if (error !== undefined && !signal.aborted) failed(error)
      } catch (error) {
        if (!signal.aborted) failed(error)
      }
      await delay(REOPEN_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  take(max: number): Promise<readonly Item[]> {
    return this.#buffer.take(max, BUFFERED_BYTES)
  }

  async settle(): Promise<void> {}

  async keep(): Promise<boolean> {
    return true
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    await this.#following
  }
}
