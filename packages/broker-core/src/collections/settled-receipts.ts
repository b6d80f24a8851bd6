/** The two ways in which a receipt ends its lease. */
export type Ending = 'ack' | 'nack'

/** The most receipts that are remembered: 30 s of 16,000 acks per second. */
const MAX_RECEIPTS = 500_000
/** Leases that end within {@link SOON_MS} are forgotten in steps of a second, longer ones in steps of a minute. */
const SOON_MS = 60_000
const SOON_STEP_MS = 1_000
const LATER_STEP_MS = 60_000
/** The number of characters at the start of a receipt that make it unique. */
const UNIQUE_LENGTH = 24

/**
 * The receipts that an engine has settled, at least until the ends of their leases. A call that is repeated because its
 * answer was lost gets the same answer. An entry is a hash, 16 to 32 bytes in memory; entries are forgotten in groups
 * with the same end.
 */
export class SettledReceipts {
  readonly #now: () => number
  readonly #most: number
  readonly #groups = new Map<number, Marks>()
  #size = 0
  #nextEnd = Infinity
  #droppedUntil = -Infinity

  /** @param now The clock of the ends of leases, in ms */
  constructor(now: () => number, most = MAX_RECEIPTS) {
    this.#now = now
    this.#most = most
  }

  /** Records that a receipt ended its lease, which would have ended at `end`. */
  remember(receipt: string, clientId: string, ending: Ending, end: number): void {
    const now = this.#now()
    if (now >= this.#nextEnd) this.#forget(now)
    const step = end - now > SOON_MS ? LATER_STEP_MS : SOON_STEP_MS
    const groupEnd = Math.ceil(end / step) * step
    let group = this.#groups.get(groupEnd)
    if (!group) {
      this.#groups.set(groupEnd, (group = new Marks()))
      this.#nextEnd = Math.min(this.#nextEnd, groupEnd)
    }
    const before = group.size
    group.add(markOf(hashOf(receipt, clientId), ending))
    this.#size += group.size - before
    if (this.#size > this.#most) this.#dropEarliest()
  }

  /**
   * Returns the way in which this client's receipt ended its lease; `dropped` if it may have ended it and was forgotten
   * too early, because there were too many; undefined if it ended none.
   */
  recall(receipt: string, clientId: string): Ending | 'dropped' | undefined {
    const now = this.#now()
    if (now >= this.#nextEnd) this.#forget(now)
    const hash = hashOf(receipt, clientId)
    for (const group of this.#groups.values()) {
      if (group.has(markOf(hash, 'ack'))) return 'ack'
      if (group.has(markOf(hash, 'nack'))) return 'nack'
    }
    return now < this.#droppedUntil ? 'dropped' : undefined
  }

  #forget(now: number): void {
    for (const end of this.#groups.keys()) if (end <= now) this.#drop(end)
    this.#nextEnd = Math.min(...this.#groups.keys())
  }

  #dropEarliest(): void {
    const end = this.#nextEnd
    this.#drop(end)
    this.#droppedUntil = Math.max(this.#droppedUntil, end)
    this.#nextEnd = Math.min(...this.#groups.keys())
  }

  #drop(end: number): void {
    this.#size -= this.#groups.get(end)?.size ?? 0
    this.#groups.delete(end)
  }
}

/** A set of numbers other than 0 that only grows. The collector of garbage need not look into its table. */
class Marks {
  #table = new Float64Array(64)
  size = 0

  add(mark: number): void {
    const place = placeOf(this.#table, mark)
    if (this.#table[place] === mark) return
    this.#table[place] = mark
    if (++this.size * 2 <= this.#table.length) return
    const larger = new Float64Array(this.#table.length * 2)
    for (const each of this.#table) if (each !== 0) larger[placeOf(larger, each)] = each
    this.#table = larger
  }

  has(mark: number): boolean {
    return this.#table[placeOf(this.#table, mark)] === mark
  }
}

/** Returns the position of a mark, or the free position where it belongs. */
function placeOf(table: Float64Array, mark: number): number {
  const last = table.length - 1
  let place = (mark / 2) & last
  while (table[place] !== 0 && table[place] !== mark) place = (place + 1) & last
  return place
}

function markOf(hash: number, ending: Ending): number {
  return hash * 2 + (ending === 'ack' ? 0 : 1)
}

/** Returns a hash of 52 bits. Receipts cannot be guessed, so no client can choose two with the same hash. */
function hashOf(receipt: string, clientId: string): number {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  const length = Math.min(receipt.length, UNIQUE_LENGTH)
  for (let i = 0; i < length; i++) {
    const code = receipt.charCodeAt(i)
    high = Math.imul(high ^ code, 2_654_435_761)
    low = Math.imul(low ^ code, 1_597_334_677)
  }
  for (let i = 0; i < clientId.length; i++) {
    const code = clientId.charCodeAt(i)
    high = Math.imul(high ^ code, 2_654_435_761)
    low = Math.imul(low ^ code, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return 4_294_967_296 * (1_048_575 & low) + (high >>> 0)
}
