import type { PullEnd } from '../pulls.ts'
import { consumerOf, GROUP_PARTITIONS } from '../streams.ts'
import type { Delivery } from './deliveries.ts'

/**
 * The duration of a request for a message of a partition, in milliseconds. A node that closes waits for its requests:
 * server 2.9 keeps a message until its ack wait is over if it is returned while a request without a receiver waits.
 */
const REQUEST_MS = 2_000
/** The pause before a partition is asked again after a failure, in milliseconds. */
const AGAIN_MS = 100

/** The consumers of a queue with groups: messages without a group have their own. */
const CONSUMERS = [undefined, ...Array.from({ length: GROUP_PARTITIONS }, (_, partition) => partition)].map(consumerOf)

interface Brought {
  readonly end: PullEnd
  readonly deliveries: readonly Delivery[]
}

interface PartitionPullsContext {
  /** Requests one message of a consumer. */
  readonly request: (consumer: string, waitMs: number) => Promise<Brought>
  /** Passes a delivery to a receiver that waits, or keeps it for the next one. */
  readonly offer: (delivery: Delivery) => void
  readonly closing: AbortSignal
}

/**
 * Requests the messages of a queue with groups. While a receiver waits, each partition has one request for one message,
 * so that all partitions are served by turns. The servers answer no request of a partition that has its maximum of
 * leased messages, not even one without a wait, so there is no faster way to ask all of them.
 */
export class PartitionPulls {
  readonly #context: PartitionPullsContext
  readonly #asked = new Map<string, Promise<void>>()
  #receivers = 0

  constructor(context: PartitionPullsContext) {
    this.#context = context
  }

  /** Requests messages for a receiver that waits. Call the returned function when it stops waiting. */
  listen(): () => void {
    this.#receivers++
    for (const consumer of CONSUMERS) {
      if (!this.#asked.has(consumer)) this.#asked.set(consumer, this.#ask(consumer))
    }
    return () => void this.#receivers--
  }

  async #ask(consumer: string): Promise<void> {
    const { closing, offer, request } = this.#context
    while (this.#receivers > 0 && !closing.aborted) {
      const { end, deliveries } = await request(consumer, REQUEST_MS)
      for (const delivery of deliveries) offer(delivery)
      if (end !== 'done') await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
    this.#asked.delete(consumer)
  }

  /** Resolves when no request waits, after `closing` was aborted. */
  async idle(): Promise<void> {
    await Promise.all(this.#asked.values())
  }
}
