import type { Ending, SettledReceipts } from '@signalbox/broker-core/internal'
import type { NackOptions, SettingsTable, SettleResult } from '@signalbox/broker-core/engine'
import { returnOf, unavailable } from '@signalbox/broker-core/engine'

import type { ChannelRegistry } from '../channel-registry.ts'
import { DELAYED } from '../store/damage.ts'
import type { Store } from '../store/store.ts'
import type { Release } from '../writer/operations.ts'
import type { Lease, Leases } from './leases.ts'
import { isExpired } from './queue.ts'
import type { Queue } from './queue.ts'
import type { QueuedMessage } from '../store/message-rows.ts'

interface SettlementContext {
  readonly registry: ChannelRegistry
  readonly settings: SettingsTable
  readonly store: Store
  readonly leases: Leases<Queue>
  readonly settled: SettledReceipts
  readonly now: () => number
  /** Handles a new message in a queue, for which a receiver may wait. */
  arrived(channel: string, channelId: number, sequence: number): void
  /** Handles the due time of a message that is delayed. */
  delayed(dueAt: number): void
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

  ack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    return this.#settle(receipts, clientId, (leases) => this.#end('ack', leases), 'ack')
  }

  nack(receipts: readonly string[], clientId: string, options?: NackOptions): Promise<SettleResult> {
    return this.#settle(receipts, clientId, (leases) => this.#end('nack', leases, options), 'nack')
  }

  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult> {
    return this.#settle(receipts, clientId, async (leases) => {
      for (const lease of leases) this.#context.leases.extend(lease, leaseMs)
    })
  }

  /**
   * Settles receipts. A receipt that has ended its lease in the same way before is settled again; one that is being
   * settled waits for the result.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async #settle(
    receipts: readonly string[],
    clientId: string,
    apply: (leases: readonly Lease<Queue>[]) => Promise<void>,
    ending?: Ending,
  ): Promise<SettleResult> {
    const { leases, settled } = this.#context
    const found: Lease<Queue>[] = []
    const busy: Lease<Queue>[] = []
    const lost: string[] = []
    let repeated = 0
    let unsure = false
    for (const receipt of receipts.length > 1 ? new Set(receipts) : receipts) {
      const lease = leases.find(receipt, clientId)
      if (lease?.settling) busy.push(lease)
      else if (lease?.queue.holds(lease.entry)) found.push(lease)
      else {
        // A message that is gone although its settlement failed: the disk had it before the failure.
        const before = lease?.tried ?? settled.recall(receipt, clientId)
        if (before === 'dropped' || (ending === 'ack' && leases.isOfEarlierRun(receipt))) unsure = true
        else if (before !== undefined && before === ending) repeated++
        else lost.push(receipt)
      }
    }
    if (found.length > 0) await apply(found)
    if (unsure) throw unavailable('the message may be acknowledged')
    if (busy.length === 0) return { settled: found.length + repeated, lost }
    for (const { settling } of busy) await settling?.catch(() => {})
    const waited = busy.map(({ receipt }) => receipt)
    const rest = await this.#settle(waited, clientId, apply, ending)
    return { settled: found.length + repeated + rest.settled, lost: [...lost, ...rest.lost] }
  }

  /** @throws BrokerError NO_DEAD_LETTER_QUEUE, ENGINE_UNAVAILABLE */
  #end(ending: Ending, leases: readonly Lease<Queue>[], options?: NackOptions): Promise<void> {
    // Refuses all or none.
    if (options?.reject === true) for (const { entry, queue } of leases) this.#assertRejectable(queue, entry)
    return this.#forEachQueue(leases, (queue, some) => {
      const work = ending === 'ack' ? this.#acknowledge(queue, some) : this.#release(queue, some, options)
      const settling = this.#restoring(some, work, ending)
      for (const lease of some) lease.settling = settling
      return settling
    })
  }

  /** Records the receipts when their settlement is durable, and restores the leases if it fails. */
  #restoring(ended: readonly Lease<Queue>[], work: Promise<void>, ending?: Ending): Promise<void> {
    const { leases, settled } = this.#context
    const record = (): void => {
      // A lease that lapsed has ended by no call, and was removed before.
      if (ending === undefined) return
      for (const lease of ended) {
        leases.drop(lease)
        settled.remember(lease.receipt, lease.clientId, ending, lease.deadline)
      }
    }
    const restore = (error: unknown): void => {
      for (const lease of ended) {
        leases.restore(lease)
        lease.settling = undefined
        lease.tried = ending ?? lease.tried
      }
      throw error
    }
    return work.then(record, restore)
  }

  /** Ends expired leases like a nack. Tries again while the disk does not accept writes. */
  lapse(leases: readonly Lease<Queue>[]): void {
    const held = leases.filter(({ queue, entry }) => queue.holds(entry))
    this.#forEachQueue(held, (queue, some) => this.#restoring(some, this.#release(queue, some))).catch(() => {
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
    if (lease.queue.holds(lease.entry)) lease.queue.removeHeld([lease.entry.sequence])
  }

  /** Ends every lease like a nack, when the engine closes. */
  async returnAll(): Promise<void> {
    const held = this.#context.leases.takeAll().filter(({ queue, entry }) => queue.holds(entry))
    // The end of the engine is no failure of the messages, so they are not delayed.
    await this.#forEachQueue(held, (queue, leases) =>
      this.#restoring(leases, this.#release(queue, leases, { delayMs: 0 })),
    ).catch(() => {})
  }

  async #forEachQueue(
    leases: readonly Lease<Queue>[],
    settle: (queue: Queue, leases: readonly Lease<Queue>[]) => Promise<void>,
  ): Promise<void> {
    const [first] = leases
    if (!first) return
    if (leases.every(({ queue }) => queue === first.queue)) {
      await settle(first.queue, leases)
      return
    }
    const byQueue = Map.groupBy(leases, ({ queue }) => queue)
    const ends = await Promise.allSettled([...byQueue].map(([queue, some]) => settle(queue, some)))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
  }

  #acknowledge(queue: Queue, leases: readonly Lease<Queue>[]): Promise<void> {
    const { store } = this.#context
    const sequences = leases.map(({ entry }) => entry.sequence)
    const operation = { kind: 'settle', channel: queue.name, channelId: queue.channel?.id ?? 0, sequences } as const
    return store.submit('settle', operation, 0, () => {
      queue.removeHeld(sequences)
      if (queue.grouped) this.#context.serve(queue)
    })
  }

  #release(queue: Queue, leases: readonly Lease<Queue>[], options?: NackOptions): Promise<void> {
    const { registry, store } = this.#context
    const now = this.#context.now()
    const ends = leases.map(({ entry }) => this.#endOf(queue, entry, now, options))
    const releases = ends.map(({ release }) => release)
    const operation = {
      kind: 'release',
      channel: queue.name,
      channelId: queue.channel?.id ?? 0,
      now,
      releases,
    } as const
    return store.submit('release', operation, 0, ({ moved }) => {
      const returned = ends.filter(({ release, heldUntil }) => isStaying(release) && heldUntil === 0)
      queue.removeHeld(releases.filter((release) => !isStaying(release)).map(({ sequence }) => sequence))
      this.returnHeld(
        queue,
        returned.map(({ entry }) => entry),
      )
      for (const { entry, release, heldUntil } of ends) {
        if (release.deadLetterQueue === '' && !isExpired(entry, now, queue.maxAgeMs)) registry.sinceOpen.retried++
        if (release.dueAt > 0) this.#context.delayed(release.dueAt)
        if (heldUntil > 0) queue.backOff([entry], heldUntil)
      }
      for (const { channel, channelId, sequence } of moved) this.#context.arrived(channel, channelId, sequence)
    })
  }

  /** Returns the end of a lease. The head of an ordered group waits at its position, and does not become delayed. */
  #endOf(queue: Queue, entry: QueuedMessage, now: number, options: NackOptions | undefined): LeaseEnd {
    const release = this.#releaseOf(queue, entry, now, options)
    if (release.dueAt === 0 || !queue.keepsOrder(entry)) return { entry, release, heldUntil: 0 }
    return { entry, release: { ...release, dueAt: 0 }, heldUntil: release.dueAt }
  }

  /**
   * Returns the release of a lease. A message that expired while leased ends as an expired one, and does not go to the
   * dead-letter queue for its receives (C2); nor does a message whose dead-letter queue is damaged.
   */
  #releaseOf({ name: channel, maxAgeMs }: Queue, message: QueuedMessage, now: number, options?: NackOptions): Release {
    const { sequence, receiveCount } = message
    const staying = { sequence, receiveCount, deadLetterQueue: '', reason: 'max_receive_count', dueAt: 0 } as const
    if (isExpired(message, now, maxAgeMs)) return staying
    const { deadLetterQueue, reason, delayMs } = returnOf(this.#context.settings, { ...message, channel }, options)
    if (deadLetterQueue !== '') {
      return this.#damaged(deadLetterQueue) ? staying : { ...staying, deadLetterQueue, reason }
    }
    // Delayed messages cannot be written while their part of the store is damaged.
    if (delayMs === 0 || this.#context.store.damage.partRefusal(DELAYED)) return staying
    return { ...staying, dueAt: now + delayMs }
  }

  /** @throws BrokerError NO_DEAD_LETTER_QUEUE, ENGINE_UNAVAILABLE */
  #assertRejectable({ name: channel }: Queue, entry: QueuedMessage): void {
    const { settings, store } = this.#context
    const { deadLetterQueue } = returnOf(settings, { ...entry, channel }, { reject: true })
    const refusal = store.damage.refusal('queues', deadLetterQueue)
    if (refusal) throw refusal
  }

  /** Returns messages to their queue, except those that expired meanwhile. */
  returnHeld(queue: Queue, entries: readonly QueuedMessage[]): void {
    const now = this.#context.now()
    const { maxAgeMs } = queue
    const expired = entries.filter((entry) => isExpired(entry, now, maxAgeMs))
    queue.returnHeld(entries.filter((entry) => !isExpired(entry, now, maxAgeMs)))
    if (expired.length > 0) {
      const sequences = expired.map(({ sequence }) => sequence)
      this.#context.expire(queue, sequences)
    }
    this.#context.serve(queue)
  }
}

interface LeaseEnd {
  readonly entry: QueuedMessage
  readonly release: Release
  /** The time until which the message waits in memory, at its position, in ms since the epoch; 0 if it does not. */
  readonly heldUntil: number
}

/** Returns whether the message stays among those that are not delayed. */
function isStaying({ deadLetterQueue, dueAt }: Release): boolean {
  return deadLetterQueue === '' && dueAt === 0
}
