import type { StoredChannel } from '../channels/stored-channel.ts'
import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'
import type { Lease } from './leases.ts'
import type { Receipt } from './receipts.ts'

const MAX_TIMER_MS = 2 ** 31 - 1
/** A node that finds a lease in its hands so long after its end leaves it to the servers, which ended it, in milliseconds. */
const LATE_MS = 60_000

/** The delivery that a lease is of. */
type Claimed = Pick<Receipt, 'queue' | 'sequence' | 'delivery' | 'deadline'>

/**
 * Who has the say about a lease. It is the node that granted it, until another one finds that node gone and writes a
 * record; of several that want the say the first to write has it.
 */
export class LeaseClaims {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  #key({ queue, sequence, delivery }: Claimed): string {
    return this.#parts.subjects.keyedRecord('t', queue, `${sequence}-${delivery}`)
  }

  /** The node that took the lease over, and the record's revision; undefined when none did. @throws BrokerError ENGINE_UNAVAILABLE */
  async holder(claimed: Claimed): Promise<{ readonly node: string; readonly revision: number } | undefined> {
    const record = await this.#parts.keyedRecords.get(this.#key(claimed))
    return record && { node: record.text, revision: record.revision }
  }

  /** Takes the lease over; false when somebody was faster than `revision`. @throws BrokerError ENGINE_UNAVAILABLE */
  claim(claimed: Claimed, revision: number): Promise<boolean> {
    return this.#parts.keyedRecords.put(this.#key(claimed), this.#parts.node, revision)
  }

  /**
   * Whether this node still has the say about a lease in its hands: while it was cut off or stood still, another one may
   * have taken it over.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async isOurs(lease: Lease): Promise<boolean> {
    const { connection, peers, node } = this.#parts
    await connection.ready()
    const { tenure } = peers
    if (lease.tenure === tenure) return true
    if (Date.now() > lease.deadline + LATE_MS) return false
    const { channel, sequence, delivery } = lease.delivery
    const claimed = { queue: channel.incarnation, sequence, delivery, deadline: lease.deadline }
    const isOurs = (await this.claim(claimed, 0)) || (await this.holder(claimed))?.node === node
    if (!isOurs) return false
    lease.tenure = tenure
    this.forgetLater(claimed)
    return true
  }

  /** The record stays as long as the receipt could be shown again, and as a node may still find the lease in its hands. */
  forgetLater(claimed: Claimed): void {
    const forget = (): void => {
      const removed = this.#parts.keyedRecords.remove(this.#key(claimed))
      runInBackground(this.#parts.settings.onProblem, 'forgetting who took over a lease', removed)
    }
    const left = claimed.deadline + 2 * LATE_MS - Date.now()
    setTimeout(forget, Math.min(MAX_TIMER_MS, Math.max(0, left))).unref()
  }

  /** Records of a deleted queue. */
  async forget({ incarnation }: StoredChannel): Promise<void> {
    await this.#parts.keyedRecords.remove(this.#parts.subjects.keyedRecord('t', incarnation, '>'))
  }
}
