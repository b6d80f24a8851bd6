import type { CounterTable } from '../channels/counter-table.ts'
import type { Delivery } from './delivery.ts'

/** A delivery in somebody's hands. */
export interface Lease {
  readonly receipt: string
  readonly clientId: string
  readonly delivery: Delivery
  /** Milliseconds since the epoch. */
  deadline: number
  /** Until when the servers keep the message from others by themselves, milliseconds since the epoch. */
  heldUntil: number
  /** This node's standing among the others when it was granted, or last found to be its own. */
  tenure: number
}

const MAX_TIMER_MS = 2 ** 31 - 1

/** The leases that this node granted or took over. Who is here has a say in them; a lease that is not here is over, or another node's. */
export class Leases {
  readonly #counterTable: CounterTable
  readonly #onLapse: (lease: Lease) => void
  readonly #leases = new Map<string, { readonly lease: Lease; timer: NodeJS.Timeout }>()

  constructor(counterTable: CounterTable, onLapse: (lease: Lease) => void) {
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
    // Timers may be early, and are not longer than some weeks.
    if (lease.deadline > Date.now()) {
      const entry = this.#leases.get(lease.receipt)
      if (entry) entry.timer = this.#timer(lease)
      return
    }
    if (this.take(lease.receipt, lease.clientId)) this.#onLapse(lease)
  }

  /** The lease, if it is here, whoever holds it. */
  get(receipt: string): Lease | undefined {
    return this.#leases.get(receipt)?.lease
  }

  /** The lease, which is over by that; undefined when it is not here, or another client's. */
  take(receipt: string, clientId: string): Lease | undefined {
    const entry = this.#leases.get(receipt)
    if (!entry || entry.lease.clientId !== clientId) return undefined
    clearTimeout(entry.timer)
    this.#leases.delete(receipt)
    this.#count(entry.lease, -1)
    return entry.lease
  }

  /** Sets another deadline. */
  extend(receipt: string, clientId: string, deadline: number): Lease | undefined {
    const entry = this.#leases.get(receipt)
    if (!entry || entry.lease.clientId !== clientId) return undefined
    entry.lease.deadline = deadline
    clearTimeout(entry.timer)
    entry.timer = this.#timer(entry.lease)
    return entry.lease
  }

  /** Sequences of a queue that are leased here. */
  sequences(incarnation: string): Set<number> {
    const found = new Set<number>()
    for (const { lease } of this.#leases.values()) {
      if (lease.delivery.channel.incarnation === incarnation) found.add(lease.delivery.sequence)
    }
    return found
  }

  /** The queue was deleted. */
  forget(incarnation: string): void {
    for (const { lease } of this.#leases.values()) {
      if (lease.delivery.channel.incarnation === incarnation) this.take(lease.receipt, lease.clientId)
    }
  }

  /** Stops keeping time, and gives every lease there is: from now on the servers keep it alone. */
  close(): readonly Lease[] {
    const left = [...this.#leases.values()].map(({ lease, timer }) => {
      clearTimeout(timer)
      return lease
    })
    this.#leases.clear()
    return left
  }

  #count({ delivery }: Lease, change: 1 | -1): void {
    this.#counterTable.change(delivery.channel.incarnation, (counts) => (counts.leased += change))
  }
}
