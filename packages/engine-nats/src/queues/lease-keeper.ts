import type { QueueDelivery } from '@signalbox/broker-core/engine'

import type { Parts } from '../parts.ts'
import { nakAfter } from './ack-subject.ts'
import type { Delivery } from './delivery.ts'
import type { Lease, Leases } from './leases.ts'
import { toMessage } from './queue-record.ts'
import type { Receipts } from './receipts.ts'

/** The servers let go of a message this much after its lease: its node is the first to know. */
const SLACK_MS = 1_000

/**
 * Grants leases and keeps the servers in step: they hold a delivery back for the ack wait, which most leases fit in;
 * for a longer one they are told at once for how long, so that it outlives its node.
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
    const { channel, record, sequence, timestamp, receiveCount } = delivery
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
    return { receipt, message: toMessage(channel.name, record, sequence, timestamp, receiveCount) }
  }

  /** Tells the servers how long to hold the message back, when they would not hold it long enough. */
  hold(lease: Lease): void {
    const now = Date.now()
    const forMs = this.#lacks(lease, lease.deadline)
    if (forMs === 0) return
    this.#parts.connection.nc.publish(lease.delivery.ackSubject, nakAfter(forMs))
    lease.heldUntil = now + forMs
  }

  /** As {@link hold} for a deadline that the lease is to have; resolves when the servers know. @throws BrokerError ENGINE_UNAVAILABLE */
  async holdUntil(lease: Lease, deadline: number): Promise<void> {
    const now = Date.now()
    const forMs = this.#lacks(lease, deadline)
    if (forMs === 0) return
    await this.#parts.connection.request(lease.delivery.ackSubject, nakAfter(forMs))
    lease.heldUntil = now + forMs
  }

  /** For how long the servers are to be told to hold the message back; 0 when they do already. */
  #lacks({ heldUntil }: Lease, deadline: number): number {
    return deadline + SLACK_MS <= heldUntil ? 0 : deadline - Date.now() + SLACK_MS
  }

  /** The node stops: from here on the servers end each lease in its time. */
  async handOver(): Promise<void> {
    const now = Date.now()
    for (const { deadline, heldUntil, delivery } of this.#leases.close()) {
      if (Math.abs(heldUntil - deadline) < 2 * SLACK_MS) continue
      this.#parts.connection.nc.publish(delivery.ackSubject, nakAfter(deadline - now))
    }
    await this.#parts.connection.nc.flush()
  }
}
