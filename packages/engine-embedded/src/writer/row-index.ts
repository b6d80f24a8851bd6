const MIN_SLOTS = 1_024
/** The share of slots in use above which the table is built again. */
const MAX_LOAD = 0.75

/**
 * Finds rows of a log by a hash of up to 53 bits, in memory: open addressing with linear probing, 16 bytes for each
 * slot, and two to four slots for each row. Different ids may have one hash, so the caller verifies each hit.
 */
export class RowIndex {
  #hashes = new Float64Array(MIN_SLOTS)
  /** The row of each slot; 0 if it was never used. */
  #rows = new Float64Array(MIN_SLOTS)
  #used = 0
  /** Rows below it were deleted. Their slots are used again by new rows. */
  #first = 1

  get bytes(): number {
    return this.#hashes.byteLength + this.#rows.byteLength
  }

  get first(): number {
    return this.#first
  }

  /** Returns the row with this hash that `isSame` accepts; 0 if there is none. */
  find(hash: number, isSame: (row: number) => boolean): number {
    const mask = this.#rows.length - 1
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const row = this.#rows[slot] ?? 0
      if (row === 0) return 0
      if (row >= this.#first && this.#hashes[slot] === hash && isSame(row)) return row
    }
  }

  /** Adds a row. It replaces the row with this hash that `isSame` accepts. */
  add(hash: number, row: number, isSame: (row: number) => boolean): void {
    if (this.#used >= this.#rows.length * MAX_LOAD) this.#build()
    const mask = this.#rows.length - 1
    let deleted = -1
    let slot = hash & mask
    for (; ; slot = (slot + 1) & mask) {
      const other = this.#rows[slot] ?? 0
      if (other === 0) {
        if (deleted >= 0) slot = deleted
        else this.#used++
        break
      }
      if (other < this.#first) {
        if (deleted < 0) deleted = slot
      } else if (this.#hashes[slot] === hash && isSame(other)) {
        break
      }
    }
    this.#hashes[slot] = hash
    this.#rows[slot] = row
  }

  /** Removes the rows below `first`. @param rows The number of the others, at most */
  deleteBelow(first: number, rows: number): void {
    this.#first = first
    if (this.#rows.length > MIN_SLOTS && rows * 8 < this.#rows.length) this.#build()
  }

  /** Builds the table again, without the deleted rows: at most half of its slots are in use then. */
  #build(): void {
    const [hashes, rows] = [this.#hashes, this.#rows]
    let live = 0
    for (const row of rows) if (row >= this.#first) live++
    const slots = Math.max(MIN_SLOTS, 2 ** Math.ceil(Math.log2(live * 2)))
    this.#hashes = new Float64Array(slots)
    this.#rows = new Float64Array(slots)
    this.#used = live
    const mask = slots - 1
    for (let from = 0; from < rows.length; from++) {
      const row = rows[from] ?? 0
      if (row < this.#first) continue
      const hash = hashes[from] ?? 0
      let slot = hash & mask
      while (this.#rows[slot] !== 0) slot = (slot + 1) & mask
      this.#hashes[slot] = hash
      this.#rows[slot] = row
    }
  }
}

/**
 * Returns a hash of 53 bits for an id of a channel. Its seed is random, so that no sender can choose ids with the
 * same hash.
 */
export function randomHash(): (channel: number, id: string) => number {
  const [seedA = 0, seedB = 0] = crypto.getRandomValues(new Uint32Array(2))
  return (channel, id) => {
    let a = seedA ^ channel
    let b = Math.imul(seedB ^ channel, 0x27d4eb2f)
    for (let i = 0; i < id.length; i++) {
      const code = id.charCodeAt(i)
      a = Math.imul(a ^ code, 0x9e3779b1)
      b = Math.imul(b ^ code, 0x5f356495)
    }
    const low = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35)
    const high = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35)
    return (high & 0x1f_ffff) * 2 ** 32 + (low >>> 0)
  }
}
