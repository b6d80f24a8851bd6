import type { Ending } from '@signalbox/broker-core/internal'

import type { CounterTable } from '../channels/counter-table.ts'
import type { Delivery } from './delivery.ts'

/** A leased delivery. */
export interface Lease {
  readonly receipt: string
  readonly clientId: string
  readonly delivery: Delivery
  /** Milliseconds since the epoch. */
  deadline: number
  /** The time until which the servers withhold the message, in milliseconds since the epoch. */
  heldUntil: number
  /** The `tenure` of this node (see Peers) when the lease was granted, or last confirmed. */
  tenure: number
  /** Resolves or rejects with the settlement that is under way, if any. */
  settling?: Promise<unknown> | undefined
  /** The ending that was tried last, and that may have been applied. */
  tried?: Ending
}

const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * The leases that this node granted or took over. A lease that is missing is over, or another node owns it.
 */
export class Leases {
  readonly #counterTable: CounterTable
  readonly #onLapse: (lease: Lease) => Promise<void>
  readonly #leases = new Map<string, { readonly lease: Lease; timer: NodeJS.Timeout }>()

  /** @param onLapse Returns the message of a lease that was not settled. Never rejects */
  constructor(counterTable: CounterTable, onLapse: (lease: Lease) => Promise<void>) {
    this.#counterTable = counterTable
    this.#onLapse = onLapse
  }

  grant(lease: Lease): void {
    const entry = { lease, timer: this.#timer(lease) }
    this.#leases.set(lease.receipt, entry)
    this.#count(lease, 1)
  }

  #timer(lease: Lease): NodeJS.Timeout {
    const left = Math.min(MAX_TIMER_MS, Math.max(0, lease.deadline - Date.now()))
    return setTimeout(() => this.#end(lease), left).unref()
  }

  #end(lease: Lease): void {
    // The settlement that is under way ends the lease, or resumes it.
    if (lease.settling) return
    // Timers may fire early, and cannot run longer than some weeks.
    if (lease.deadline > Date.now()) {
      const entry = this.#leases.get(lease.receipt)
      if (entry) entry.timer = this.#timer(lease)
      return
    }
    if (this.#remove(lease.receipt, lease.clientId)) void this.#giveBack(lease)
  }

  /** Counts the message as leased until the servers have it back: a receive before that could get a later message. */
  async #giveBack(lease: Lease): Promise<void> {
    await this.#onLapse(lease)
    if (this.#counterTable.get(lease.delivery.channel.incarnation)) this.#count(lease, -1)
  }

  /** Returns the lease of any client, if this node has it. */
  get(receipt: string): Lease | undefined {
    return this.#leases.get(receipt)?.lease
  }

  /** Ends the lease and returns it; undefined if this node does not have it, or another client holds it. */
  take(receipt: string, clientId: string): Lease | undefined {
    const lease = this.#remove(receipt, clientId)
    if (lease) this.#count(lease, -1)
    return lease
  }

  #remove(receipt: string, clientId: string): Lease | undefined {
    const entry = this.#leases.get(receipt)
    if (!entry || entry.lease.clientId !== clientId) return undefined
    clearTimeout(entry.timer)
    this.#leases.delete(receipt)
    return entry.lease
  }

  /** Changes the deadline. */
  extend(receipt: string, clientId: string, deadline: number): Lease | undefined {
    const entry = this.#leases.get(receipt)
    if (!entry || entry.lease.clientId !== clientId) return undefined
    entry.lease.deadline = deadline
    clearTimeout(entry.timer)
    entry.timer = this.#timer(entry.lease)
    return entry.lease
  }

  /** Ends a lease whose deadline passed during a settlement that failed. */
  resume(lease: Lease): void {
    const entry = this.#leases.get(lease.receipt)
    if (!entry) return
    clearTimeout(entry.timer)
    entry.timer = this.#timer(lease)
  }

  /** Returns the sequences of a queue that are leased on this node. */
  sequences(incarnation: string): Set<number> {
    const found = new Set<number>()
    for (const { lease } of this.#leases.values()) {
      if (lease.delivery.channel.incarnation === incarnation) found.add(lease.delivery.sequence)
    }
    return found
  }

  /** Ends the leases of a deleted queue. */
  forget(incarnation: string): void {
    for (const { lease } of this.#leases.values()) {
      if (lease.delivery.channel.incarnation === incarnation) this.take(lease.receipt, lease.clientId)
    }
  }

  /** Stops the timers and returns the leases that are not being settled. From then on only the servers end leases. */
  close(): readonly Lease[] {
    const left: Lease[] = []
    for (const { lease, timer } of this.#leases.values()) {
      clearTimeout(timer)
      if (!lease.settling) left.push(lease)
    }
    this.#leases.clear()
    return left
  }

  #count({ delivery }: Lease, change: 1 | -1): void {
    this.#counterTable.change(delivery.channel.incarnation, (counts) => (counts.leased += change))
  }
}
