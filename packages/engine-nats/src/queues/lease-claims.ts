import type { StoredChannel } from '../channels/stored-channel.ts'
import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'
import type { Lease } from './leases.ts'
import type { Receipt } from './receipts.ts'

const MAX_TIMER_MS = 2 ** 31 - 1
/**
 * The time after the end of a lease from which a node no longer acts on it, because the servers have ended
 * it, in milliseconds.
 */
const LATE_MS = 60_000

/** The delivery that a lease belongs to. */
type Claimed = Pick<Receipt, 'queue' | 'sequence' | 'delivery' | 'deadline'>

/**
 * The ownership of leases. The node that granted a lease owns it until another node finds that node gone and
 * writes a record; if several nodes do, the first one owns it.
 */
export class LeaseClaims {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  #key({ queue, sequence, delivery }: Claimed): string {
    return this.#parts.subjects.keyedRecord('t', queue, `${sequence}-${delivery}`)
  }

  /**
   * Returns the node that took the lease over, and the record's revision; undefined if no node did. @throws
   * BrokerError ENGINE_UNAVAILABLE
   */
  async holder(claimed: Claimed): Promise<{ readonly node: string; readonly revision: number } | undefined> {
    const record = await this.#parts.keyedRecords.get(this.#key(claimed))
    return record && { node: record.text, revision: record.revision }
  }

  /**
   * Takes the lease over. Returns false if the record has another revision by now. @throws BrokerError
   * ENGINE_UNAVAILABLE
   */
  claim(claimed: Claimed, revision: number): Promise<boolean> {
    return this.#parts.keyedRecords.put(this.#key(claimed), this.#parts.node, revision)
  }

  /**
   * Returns true when this node still owns a lease. Another node may have taken it over while this one was
   * cut off or suspended.
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

  /**
   * Removes the record later: it must last as long as a client may send the receipt, and as the former owner
   * may still act on the lease.
   */
  forgetLater(claimed: Claimed): void {
    const forget = (): void => {
      const removed = this.#parts.keyedRecords.remove(this.#key(claimed))
      runInBackground(this.#parts.settings.onProblem, 'removing the record of a lease', removed)
    }
    const left = claimed.deadline + 2 * LATE_MS - Date.now()
    setTimeout(forget, Math.min(MAX_TIMER_MS, Math.max(0, left))).unref()
  }

  /** Removes the records of a deleted queue. */
  async forget({ incarnation }: StoredChannel): Promise<void> {
    await this.#parts.keyedRecords.remove(this.#parts.subjects.keyedRecord('t', incarnation, '>'))
  }
}
