import type { QueueDelivery } from '@signalbox/broker-core/engine'
import { unavailable } from '@signalbox/broker-core/engine'
import type { Ending } from '@signalbox/broker-core/internal'
import { Buffer } from 'node:buffer'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

import type { CounterTable } from '../channels/counter-table.ts'
import type { KeyedRecords } from '../keyed-records.ts'
import type { Parts } from '../parts.ts'
import { nakAfter } from '../pulls.ts'
import type { Subjects } from '../subjects.ts'
import type { Delivery } from './deliveries.ts'
import { queueMessageOf } from './deliveries.ts'
import { MAX_TIMER_MS } from '@signalbox/broker-core/internal'

/** A leased delivery. */
export interface Lease {
  readonly receipt: string
  readonly clientId: string
  readonly delivery: Delivery
  /** Milliseconds since the epoch. */
  deadline: number
  /** The time until which the servers withhold the message, in milliseconds since the epoch. */
  heldUntil: number
  /** The `livenessEpoch` of this node (see Peers) when the lease was granted, or last confirmed. */
  livenessEpoch: number
  /** Resolves or rejects with the settlement that is in progress, if any. */
  settling?: Promise<unknown> | undefined
  /** The ending that was tried last, and that may have been applied. */
  tried?: Ending | undefined
}

/**
 * The leases that this node granted or took over. A lease that is missing is over, or another node owns it.
 */
export class Leases {
  readonly #counterTable: CounterTable
  readonly #onLapse: (lease: Lease) => Promise<void>
  readonly #onEnd: (channel: string) => void
  readonly #leases = new Map<string, { readonly lease: Lease; timer: NodeJS.Timeout }>()

  /**
   * @param onLapse Returns the message of a lease that was not settled. Never rejects
   * @param onEnd Called when a message is not counted as leased any more
   */
  constructor(counterTable: CounterTable, onLapse: (lease: Lease) => Promise<void>, onEnd: (channel: string) => void) {
    this.#counterTable = counterTable
    this.#onLapse = onLapse
    this.#onEnd = onEnd
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
    // The settlement that is in progress ends the lease, or resumes it.
    if (lease.settling) return
    // Timers may fire early, and cannot run longer than some weeks.
    if (lease.deadline > Date.now()) {
      const entry = this.#leases.get(lease.receipt)
      if (entry) entry.timer = this.#timer(lease)
      return
    }
    if (this.#remove(lease.receipt, lease.clientId)) void this.#returnMessage(lease)
  }

  /** Counts the message as leased until the servers have it back: a receive before that could get a later message. */
  async #returnMessage(lease: Lease): Promise<void> {
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
    if (change < 0) this.#onEnd(delivery.channel.name)
  }
}

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
      livenessEpoch: this.#parts.peers.livenessEpoch,
    }
    this.hold(lease)
    this.#leases.grant(lease)
    return { receipt, message: queueMessageOf(channel.name, record, delivery) }
  }

  /** Extends the time for which the servers withhold the message, if it ends before the lease. */
  hold(lease: Lease): void {
    const now = Date.now()
    const forMs = this.#missingHoldMs(lease, lease.deadline)
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
    const forMs = this.#missingHoldMs(lease, deadline)
    if (forMs === 0) return
    await this.#parts.connection.request(lease.delivery.ackSubject, nakAfter(forMs))
    lease.heldUntil = now + forMs
  }

  /**
   * Returns the time for which the servers must withhold the message, in milliseconds; 0 if they do already.
   */
  #missingHoldMs({ heldUntil }: Lease, deadline: number): number {
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

/** The content of a receipt. A MAC proves that a node wrote it. */
export interface Receipt {
  /** The incarnation of the queue. */
  readonly queue: string
  readonly sequence: number
  readonly delivery: number
  /** The node that granted the lease. */
  readonly node: string
  /** The end of the lease as it was granted, in milliseconds since the epoch. */
  readonly deadline: number
  readonly receiveCount: number
  readonly clientId: string
}

const KEY_BYTES = 32
const MAC_BYTES = 16
const MAX_LENGTH = 2_048

/** Writes and reads receipts. All nodes share the key, which the cluster stores. */
export class Receipts {
  readonly #key: Buffer

  private constructor(key: Buffer) {
    this.#key = key
  }

  static async open(keyedRecords: KeyedRecords, subjects: Subjects): Promise<Receipts> {
    const subject = subjects.keyedRecord('key')
    await keyedRecords.put(subject, randomBytes(KEY_BYTES).toString('base64url'), 0)
    const record = await keyedRecords.get(subject)
    const key = Buffer.from(record?.text ?? '', 'base64url')
    // With an empty key any client could write receipts.
    if (key.byteLength !== KEY_BYTES) throw unavailable(`the key of receipts (${subject}) cannot be read; restore it`)
    return new Receipts(key)
  }

  write(receipt: Receipt): string {
    const { queue, sequence, delivery, node, deadline, receiveCount, clientId } = receipt
    const text = Buffer.from(JSON.stringify([queue, sequence, delivery, node, deadline, receiveCount, clientId]))
    return Buffer.concat([this.#mac(text), text]).toString('base64url')
  }

  /** Reads a receipt. Returns undefined for a text that no node wrote in exactly this form. */
  read(text: string): Receipt | undefined {
    if (text.length > MAX_LENGTH) return undefined
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== text) return undefined
    const content = bytes.subarray(MAC_BYTES)
    if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), this.#mac(content))) return undefined
    const parts: unknown = JSON.parse(content.toString())
    if (!Array.isArray(parts)) return undefined
    const [queue, sequence, delivery, node, deadline, receiveCount, clientId] = parts.map(String)
    if (queue === undefined || node === undefined || clientId === undefined) return undefined
    return {
      queue,
      sequence: Number(sequence),
      delivery: Number(delivery),
      node,
      deadline: Number(deadline),
      receiveCount: Number(receiveCount),
      clientId,
    }
  }

  #mac(content: Uint8Array): Buffer {
    return createHmac('sha256', this.#key).update(content).digest().subarray(0, MAC_BYTES)
  }
}
