import type { QueueDelivery } from '@signalbox/broker-core/engine'

import type { Parts } from '../parts.ts'
import { nakAfter } from './ack-subject.ts'
import type { Delivery } from './delivery.ts'
import { queueMessageOf } from './delivery.ts'
import type { Lease, Leases } from './leases.ts'
import type { Receipts } from './receipts.ts'

/**
 * The time after a lease's end at which the servers release the message, so that the lease's node acts
 * first.
 */
const SLACK_MS = 1_000

/**
 * Grants leases and keeps the servers informed. The servers withhold a delivery for the ack wait, which
 * covers most leases; for a longer lease they receive its duration at once, so that the lease outlives its
 * node.
 */
export class LeaseKeeper {
  readonly #parts: Parts
  readonly #leases: Leases
  readonly #receipts: Receipts

  constructor(parts: Parts, leases: Leases, receipts: Receipts) {
    this.#parts = parts
    this.#leases = leases
    this.#receipts = receipts
  }

  grant(delivery: Delivery, clientId: string, leaseMs: number): QueueDelivery {
    const { channel, record, sequence, receiveCount } = delivery
    const deadline = Date.now() + leaseMs
    const receipt = this.#receipts.write({
      queue: channel.incarnation,
      sequence,
      delivery: delivery.delivery,
      node: this.#parts.node,
      deadline,
      receiveCount,
      clientId,
    })
    const lease = {
      receipt,
      clientId,
      delivery,
      deadline,
      heldUntil: delivery.arrivedAt + this.#parts.settings.ackWaitMs,
      tenure: this.#parts.peers.tenure,
    }
    this.hold(lease)
    this.#leases.grant(lease)
    return { receipt, message: queueMessageOf(channel.name, record, delivery) }
  }

  /** Extends the time for which the servers withhold the message, if it ends before the lease. */
  hold(lease: Lease): void {
    const now = Date.now()
    const forMs = this.#lacks(lease, lease.deadline)
    if (forMs === 0) return
    this.#parts.connection.nc.publish(lease.delivery.ackSubject, nakAfter(forMs))
    lease.heldUntil = now + forMs
  }

  /**
   * Like {@link hold}, for a new deadline. Resolves when the servers have accepted it. @throws BrokerError
   * ENGINE_UNAVAILABLE
   */
  async holdUntil(lease: Lease, deadline: number): Promise<void> {
    const now = Date.now()
    const forMs = this.#lacks(lease, deadline)
    if (forMs === 0) return
    await this.#parts.connection.request(lease.delivery.ackSubject, nakAfter(forMs))
    lease.heldUntil = now + forMs
  }

  /**
   * Returns the time for which the servers must withhold the message, in milliseconds; 0 if they do already.
   */
  #lacks({ heldUntil }: Lease, deadline: number): number {
    return deadline + SLACK_MS <= heldUntil ? 0 : deadline - Date.now() + SLACK_MS
  }

  /** Leaves all leases to the servers, which end each at its deadline. Called when the node stops. */
  async handOver(): Promise<void> {
    const now = Date.now()
    for (const { deadline, heldUntil, delivery } of this.#leases.close()) {
      if (Math.abs(heldUntil - deadline) < 2 * SLACK_MS) continue
      this.#parts.connection.nc.publish(delivery.ackSubject, nakAfter(deadline - now))
    }
    await this.#parts.connection.nc.flush()
  }
}
