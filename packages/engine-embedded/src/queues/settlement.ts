import type { SettleResult } from '@signalbox/broker-core/engine'

import type { ChannelRegistry } from '../channel-registry.ts'
import type { Store } from '../store/store.ts'
import type { Release } from '../writer/operations.ts'
import type { Lease, Leases } from './leases.ts'
import { isExpired } from './queue.ts'
import type { Queue } from './queue.ts'
import type { WindowEntry } from './window.ts'

export interface SettlementContext {
  readonly registry: ChannelRegistry
  readonly store: Store
  readonly leases: Leases<Queue>
  readonly now: () => number
  /** Handles a new message in a queue, for which a receiver may wait. */
  arrived(channel: string, channelId: number, sequence: number): void
  /** Serves the waiting receivers of a queue that has deliverable messages again. */
  serve(queue: Queue): void
  expire(queue: Queue, sequences: number[]): void
}

/** Ends leases: by ack, by nack, or by time-out. Every end is durable before it is visible. */
export class LeaseSettlement {
  readonly #context: SettlementContext

  constructor(context: SettlementContext) {
    this.#context = context
  }

  async ack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    const { taken, lost } = this.#take(receipts, clientId)
    await this.#forEachQueue(taken, (queue, leases) => this.#acknowledge(queue, leases))
    return { settled: taken.length, lost }
  }

  async nack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    const { taken, lost } = this.#take(receipts, clientId)
    await this.#forEachQueue(taken, (queue, leases) => this.#release(queue, leases))
    return { settled: taken.length, lost }
  }

  extend(receipts: readonly string[], clientId: string, leaseMs: number): SettleResult {
    const lost: string[] = []
    let settled = 0
    for (const receipt of new Set(receipts)) {
      const lease = this.#context.leases.find(receipt, clientId)
      if (lease?.queue.holds(lease.entry)) {
        this.#context.leases.extend(lease, leaseMs)
        settled++
      } else {
        lost.push(receipt)
      }
    }
    return { settled, lost }
  }

  /** Ends expired leases like a nack. Tries again while the disk does not accept writes. */
  lapse(leases: readonly Lease<Queue>[]): void {
    const held = leases.filter(({ queue, entry }) => queue.holds(entry))
    this.#forEachQueue(held, (queue, some) => this.#release(queue, some)).catch(() => {
      // The leases were restored and expire again, because their deadlines have passed. In a damaged queue that would
      // never end.
      for (const lease of held) if (this.#damaged(lease.queue.name)) this.#giveUp(lease)
    })
  }

  #damaged(queue: string): boolean {
    return this.#context.store.damage.has('queues', queue)
  }

  #giveUp(lease: Lease<Queue>): void {
    this.#context.leases.drop(lease)
    if (lease.queue.holds(lease.entry)) lease.queue.letGo([lease.entry.sequence])
  }

  /** Ends every lease like a nack, when the engine closes. */
  async returnAll(): Promise<void> {
    const held = this.#context.leases.takeAll().filter(({ queue, entry }) => queue.holds(entry))
    await this.#forEachQueue(held, (queue, leases) => this.#release(queue, leases)).catch(() => {})
  }

  #take(receipts: readonly string[], clientId: string): { taken: Lease<Queue>[]; lost: string[] } {
    const taken: Lease<Queue>[] = []
    const lost: string[] = []
    for (const receipt of receipts) {
      const lease = this.#context.leases.take(receipt, clientId)
      if (lease?.queue.holds(lease.entry)) taken.push(lease)
      else lost.push(receipt)
    }
    return { taken, lost }
  }

  async #forEachQueue(
    leases: readonly Lease<Queue>[],
    settle: (queue: Queue, leases: readonly Lease<Queue>[]) => Promise<void>,
  ): Promise<void> {
    const first = leases[0]
    if (!first) return
    if (leases.every(({ queue }) => queue === first.queue)) return settle(first.queue, leases)
    const byQueue = Map.groupBy(leases, ({ queue }) => queue)
    const ends = await Promise.allSettled([...byQueue].map(([queue, some]) => settle(queue, some)))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
  }

  #acknowledge(queue: Queue, leases: readonly Lease<Queue>[]): Promise<void> {
    const { store } = this.#context
    const sequences = leases.map(({ entry }) => entry.sequence)
    return this.#restoring(leases, () =>
      store.submit(
        'settle',
        { kind: 'settle', channel: queue.name, channelId: queue.channel?.id ?? 0, sequences, expired: false },
        0,
        () => queue.letGo(sequences),
      ),
    )
  }

  #release(queue: Queue, leases: readonly Lease<Queue>[]): Promise<void> {
    const { store } = this.#context
    const now = this.#context.now()
    const entries = leases.map(({ entry }) => entry)
    const releases = entries.map((entry) => this.#releaseOf(entry, now))
    return this.#restoring(leases, () =>
      store.submit(
        'release',
        { kind: 'release', channel: queue.name, channelId: queue.channel?.id ?? 0, now, releases },
        0,
        ({ moved }) => {
          const staying = entries.filter((_, i) => releases[i]?.deadLetterQueue === '')
          queue.letGo(releases.filter(({ deadLetterQueue }) => deadLetterQueue !== '').map(({ sequence }) => sequence))
          this.giveBack(queue, staying)
          for (const { channel, channelId, sequence } of moved) this.#context.arrived(channel, channelId, sequence)
        },
      ),
    )
  }

  /**
   * Returns the release of a lease. A message that expired while leased is counted as expired and does not go to the
   * dead-letter queue (C2); nor does a message whose dead-letter queue is damaged.
   */
  #releaseOf(
    { sequence, receiveCount, maxReceiveCount, deadLetterQueue, expiresAt }: WindowEntry,
    now: number,
  ): Release {
    const spent = maxReceiveCount > 0 && receiveCount >= maxReceiveCount && !isExpired(expiresAt, now)
    return { sequence, receiveCount, deadLetterQueue: spent && !this.#damaged(deadLetterQueue) ? deadLetterQueue : '' }
  }

  /** Returns messages to their queue, except those that expired meanwhile. */
  giveBack(queue: Queue, entries: readonly WindowEntry[]): void {
    const now = this.#context.now()
    const expired = entries.filter(({ expiresAt }) => isExpired(expiresAt, now))
    queue.giveBack(entries.filter(({ expiresAt }) => !isExpired(expiresAt, now)))
    if (expired.length > 0) {
      const sequences = expired.map(({ sequence }) => sequence)
      this.#context.expire(queue, sequences)
    }
    this.#context.serve(queue)
  }

  /** Restores the leases if the settlement fails. */
  async #restoring(leases: readonly Lease<Queue>[], settle: () => Promise<void>): Promise<void> {
    try {
      await settle()
    } catch (error) {
      for (const lease of leases) if (lease.queue.holds(lease.entry)) this.#context.leases.restore(lease)
      throw error
    }
  }
}
