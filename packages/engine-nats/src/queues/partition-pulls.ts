import type { ReceiveOptions } from '@signalbox/broker-core/engine'

import type { PullEnd } from '../pulls.ts'
import { consumerOf, GROUP_PARTITIONS } from '../streams.ts'
import type { Delivery } from './deliveries.ts'

/** The duration of a request that waits for a message of a partition, in milliseconds. */
const LISTEN_MS = 5_000
/** The pause before a partition is asked again after a failure, in milliseconds. */
const AGAIN_MS = 100

/** The consumers of a queue with groups, in the order of their turns: messages without a group have their own. */
const CONSUMERS = [undefined, ...Array.from({ length: GROUP_PARTITIONS }, (_, partition) => partition)].map(consumerOf)

/** The messages that a request brought. */
interface Brought {
  readonly end: PullEnd
  readonly deliveries: readonly Delivery[]
  /** The number of messages that arrived and were not for a receiver. */
  readonly passed: number
}

interface PartitionPullsContext {
  /** Requests one message of a consumer. */
  request(consumer: string, waitMs: number): Promise<Brought>
  /** Passes a delivery to a receiver that waits. */
  offer(delivery: Delivery): void
  readonly closing: AbortSignal
}

/** Requests the messages of a queue with groups. Its partitions have turns, one message each. */
export class PartitionPulls {
  readonly #context: PartitionPullsContext
  readonly #listening = new Set<string>()
  #turn = 0
  #receivers = 0

  constructor(context: PartitionPullsContext) {
    this.#context = context
  }

  /**
   * Requests the messages that are deliverable now, up to the limits of the receiver. Resolves with undefined if the queue
   * has no such consumers: it was deleted, or they are being created.
   */
  async take({ maxMessages, maxBytes }: ReceiveOptions): Promise<readonly Delivery[] | undefined> {
    const taken: Delivery[] = []
    let bytes = 0
    let open = [...CONSUMERS.slice(this.#turn), ...CONSUMERS.slice(0, this.#turn)]
    while (open.length > 0 && taken.length < maxMessages && bytes <= (maxBytes ?? Infinity)) {
      // Messages that do not fit go back to the servers, so a receiver with few bytes asks one partition at a time.
      const lap = open.slice(0, maxBytes === undefined ? maxMessages - taken.length : 1)
      const brought = await Promise.all(lap.map((consumer) => this.#context.request(consumer, 0)))
      if (brought.every(({ end }) => end === 'gone') && taken.length === 0) return undefined
      const again = lap.filter((_, i) => brought[i] && brought[i].deliveries.length + brought[i].passed > 0)
      for (const { deliveries } of brought) taken.push(...deliveries)
      bytes = taken.reduce((sum, { size }) => sum + size, 0)
      this.#turn = (CONSUMERS.indexOf(lap.at(-1) ?? '') + 1) % CONSUMERS.length
      open = [...open.slice(lap.length), ...again]
    }
    return taken
  }

  /** Requests messages of all partitions for receivers that wait. Call the returned function when one stops waiting. */
  listen(): () => void {
    this.#receivers++
    for (const consumer of CONSUMERS) void this.#listenTo(consumer)
    return () => void this.#receivers--
  }

  async #listenTo(consumer: string): Promise<void> {
    if (this.#listening.has(consumer)) return
    this.#listening.add(consumer)
    while (this.#receivers > 0 && !this.#context.closing.aborted) {
      const { end, deliveries, passed } = await this.#context.request(consumer, LISTEN_MS)
      for (const delivery of deliveries) this.#context.offer(delivery)
      if (deliveries.length + passed === 0 && end !== 'done')
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
    this.#listening.delete(consumer)
  }
}
