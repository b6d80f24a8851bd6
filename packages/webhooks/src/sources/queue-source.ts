import type { BrokerHandle } from '@signalbox/broker-core'
import { pauseAfter } from '@signalbox/broker-core/internal'

import { BUFFERED_BYTES } from './limits.ts'
import type { Item, Source } from './source.ts'

/** The time of one receive, in ms. */
const WAIT_MS = 30_000

/** The lease of a received message, in ms: longer than an attempt with its wait for a place. */
const LEASE_MS = 60_000

/** The messages of a queue. Each is leased until the endpoint accepts it. */
export class QueueSource implements Source {
  readonly #system: BrokerHandle
  readonly #channel: string
  readonly #signal: AbortSignal
  readonly #failed: (error: unknown) => void

  /** @param options.failed Receives failures; the source continues after them */
  constructor(
    system: BrokerHandle,
    channel: string,
    { signal, failed }: { readonly signal: AbortSignal; readonly failed: (error: unknown) => void },
  ) {
    this.#system = system
    this.#channel = channel
    this.#signal = signal
    this.#failed = failed
  }

  async take(max: number): Promise<readonly Item[]> {
    const signal = this.#signal
    for (;;) {
      signal.throwIfAborted()
      try {
        const options = { maxMessages: max, maxBytes: BUFFERED_BYTES, waitMs: WAIT_MS, leaseMs: LEASE_MS, signal }
        const deliveries = await this.#system.queues.receive(this.#channel, options)
        if (deliveries.length > 0) {
          return deliveries.map(({ message, receipt }) => ({ message, sequence: 0, receipt, name: message.id }))
        }
      } catch (error) {
        signal.throwIfAborted()
        this.#failed(error)
        await pauseAfter(1, { signal })
      }
    }
  }

  async settle(items: readonly Item[]): Promise<void> {
    await this.#system.queues.ack(receiptsOf(items))
  }

  async keep(items: readonly Item[], ms: number): Promise<boolean> {
    const { lost } = await this.#system.queues.extend(receiptsOf(items), ms + LEASE_MS)
    return lost.length === 0
  }

  async release(items: readonly Item[]): Promise<void> {
    await this.#system.queues.nack(receiptsOf(items))
  }

  async close(): Promise<void> {}
}

function receiptsOf(items: readonly Item[]): readonly string[] {
  return items.map(({ receipt }) => receipt)
}
