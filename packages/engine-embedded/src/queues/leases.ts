import type { Ending } from '@signalbox/broker-core/internal'
import { MAX_TIMER_MS, NumberMap } from '@signalbox/broker-core/internal'
import { randomUUID } from 'node:crypto'

import type { QueuedMessage } from '../store/message-rows.ts'

/** A delivery of one message of a queue `Q` to one client. */
export interface Lease<Q> {
  readonly number: number
  /**
   * The receipt: the number that finds the lease, a random part that cannot be guessed, the run of the engine, and the
   * end of the lease as it was granted, in seconds since the epoch.
   */
  readonly receipt: string
  readonly clientId: string
  readonly queue: Q
  readonly entry: QueuedMessage
  /** The end of the lease, by the monotonic clock, in ms. */
  deadline: number
  /** The time at which the timer checks the lease: its deadline, or later if its end could not be stored. */
  alarm: number
  /** Resolves or rejects with the settlement that is in progress, if any. */
  settling: Promise<unknown> | undefined
  /** The ending that failed, and that may have been applied. */
  tried: Ending | undefined
}

/** A deadline with the lease's number. A heap of leases would keep the messages of settled leases in memory. */
interface Deadline {
  readonly at: number
  readonly number: number
}

/** The base of the number at the start of a receipt. */
const RECEIPT_BASE = 36

/** A receipt. Its groups are the run of the engine that granted it, and the end of the lease. */
const RECEIPT = /^[\da-z]{1,11}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}-([\da-f]{8})-([\da-z]{1,11})$/

/** The wait before the engine tries again to store the end of a lease, in ms. */
const RETRY_MS = 500

/**
 * All leases by receipt, with one timer for the next one to expire. Leases live in memory and expire by a monotonic
 * clock. A lease past its deadline is lost, even before the timer has handled it.
 */
export class Leases<Q> {
  readonly #byNumber = new NumberMap<Lease<Q>>()
  #lastNumber = 0
  readonly #run = randomUUID().slice(0, 8)
  /** The end of the latest receipts, in seconds since the epoch, and the end of their text. */
  #lastEnd = 0
  #suffix = ''
  /**
   * A binary heap. The deadline of an extended or settled lease stays until it reaches the top, or until a sweep
   * removes it.
   */
  #heap: Deadline[] = []
  #timer: NodeJS.Timeout | undefined
  #timerAt = Infinity
  readonly #onLapse: (leases: readonly Lease<Q>[]) => void

  constructor(onLapse: (leases: readonly Lease<Q>[]) => void) {
    this.#onLapse = onLapse
  }

  grant(queue: Q, entry: QueuedMessage, clientId: string, leaseMs: number): Lease<Q> {
    const deadline = performance.now() + leaseMs
    const number = ++this.#lastNumber
    const receipt = `${number.toString(RECEIPT_BASE)}-${randomUUID()}${this.#suffixOf(leaseMs)}`
    const lease: Lease<Q> = {
      number,
      receipt,
      clientId,
      queue,
      entry,
      deadline,
      alarm: deadline,
      settling: undefined,
      tried: undefined,
    }
    this.#byNumber.set(number, lease)
    this.#push({ at: deadline, number })
    return lease
  }

  #suffixOf(leaseMs: number): string {
    const end = Math.ceil((Date.now() + leaseMs) / 1000)
    if (end !== this.#lastEnd) this.#suffix = `-${this.#run}-${end.toString(RECEIPT_BASE)}`
    this.#lastEnd = end
    return this.#suffix
  }

  /** Restores a lease whose settlement failed. */
  restore(lease: Lease<Q>): void {
    this.#byNumber.set(lease.number, lease)
    lease.alarm = Math.max(lease.deadline, performance.now() + RETRY_MS)
    this.#push({ at: lease.alarm, number: lease.number })
  }

  /** Returns the lease of a receipt, if it belongs to this client and has not expired, or is being settled. */
  find(receipt: string, clientId: string): Lease<Q> | undefined {
    const lease = this.#byNumber.get(Number.parseInt(receipt, RECEIPT_BASE))
    if (lease?.receipt !== receipt || lease.clientId !== clientId) return undefined
    return lease.settling || lease.deadline > performance.now() ? lease : undefined
  }

  /** Returns whether an earlier run of the engine granted the lease, which would not have ended yet. */
  isOfEarlierRun(receipt: string): boolean {
    const [, run, end = ''] = RECEIPT.exec(receipt) ?? []
    return run !== undefined && run !== this.#run && Number.parseInt(end, RECEIPT_BASE) * 1000 > Date.now()
  }

  /** Removes a lease that is settled, or that has lost its message. */
  drop(lease: Lease<Q>): void {
    this.#byNumber.delete(lease.number)
  }

  extend(lease: Lease<Q>, leaseMs: number): void {
    lease.deadline = performance.now() + leaseMs
    lease.alarm = lease.deadline
    this.#push({ at: lease.alarm, number: lease.number })
  }

  /** Removes every lease; returns those that are not being settled, in the order in which they were granted. */
  takeAll(): Lease<Q>[] {
    const unsettled = this.#byNumber.values().filter(({ settling }) => !settling)
    const leases = unsettled.sort((a, b) => a.number - b.number)
    this.#byNumber.clear()
    this.#heap = []
    return leases
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #arm(): void {
    const next = this.#heap[0]?.at ?? Infinity
    if (next >= this.#timerAt && this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerAt = next
    if (next === Infinity) return
    const wait = Math.min(Math.max(Math.ceil(next - performance.now()), 1), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#lapse(), wait).unref()
  }

  #lapse(): void {
    this.#timer = undefined
    this.#timerAt = Infinity
    const now = performance.now()
    const lapsed: Lease<Q>[] = []
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      this.#pop()
      const lease = this.#byNumber.get(first.number)
      if (lease?.alarm === first.at && !lease.settling) {
        this.#byNumber.delete(first.number)
        lapsed.push(lease)
      }
    }
    this.#arm()
    if (lapsed.length > 0) this.#onLapse(lapsed)
  }

  #push(deadline: Deadline): void {
    if (this.#heap.length > 1_024 && this.#heap.length > 2 * this.#byNumber.size) this.#sweep()
    const heap = this.#heap
    let at = heap.push(deadline) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (!above || above.at <= deadline.at) break
      heap[at] = above
      at = parent
    }
    heap[at] = deadline
    this.#arm()
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      let child = left
      const l = heap[left]
      const r = heap[right]
      if (!l) break
      if (r && r.at < l.at) child = right
      const below = heap[child]
      if (!below || below.at >= last.at) break
      heap[at] = below
      at = child
    }
    heap[at] = last
  }

  /** Removes the deadlines of settled and extended leases. The result is a sorted array, which is a heap. */
  #sweep(): void {
    this.#heap = this.#heap
      .filter(({ at, number }) => this.#byNumber.get(number)?.alarm === at)
      .sort((a, b) => a.at - b.at)
  }
}
