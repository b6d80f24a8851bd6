/** The smallest table size. All sizes are powers of two. */
const FEWEST = 16
/**
 * Tables up to this size do not shrink. Otherwise a map that fills and empties with every group of messages would
 * allocate a table each time, which cost a tenth of the time of a receive.
 */
const KEPT = 1_024
/** Spreads neighboring keys over the table: 2³² divided by the golden ratio. */
const SPREAD = 0x9e3779b1

/**
 * A map with whole numbers from 0 to 2⁵³ - 1 as keys, unordered, for entries that live as long as one message. An
 * open-addressing table with linear probing, which closes the gap when an entry is removed. It replaces `Map` for the
 * reason given at {@link OrderedSet}: a `Map` has the same chain of old tables as a `Set`.
 */
export class NumberMap<T extends object> {
  #keys = new Float64Array(FEWEST)
  /** The values; `undefined` marks a free position. */
  #values: (T | undefined)[] = emptyTable(FEWEST)
  #shift = 32 - Math.log2(FEWEST)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: number): T | undefined {
    return this.#values[this.#place(key)]
  }

  has(key: number): boolean {
    return this.get(key) !== undefined
  }

  set(key: number, value: T): void {
    const place = this.#place(key)
    if (this.#values[place] === undefined) this.#size++
    this.#keys[place] = key
    this.#values[place] = value
    if (this.#size * 2 > this.#values.length) this.#resize(this.#values.length * 2)
  }

  delete(key: number): boolean {
    let gap = this.#place(key)
    if (this.#values[gap] === undefined) return false
    this.#size--
    const last = this.#values.length - 1
    // Moves displaced entries back into the gap, so that a search from their own position finds them.
    for (let at = (gap + 1) & last; this.#values[at] !== undefined; at = (at + 1) & last) {
      const key = this.#keys[at] ?? 0
      const distance = (at - this.#home(key)) & last
      if (distance < ((at - gap) & last)) continue
      this.#keys[gap] = key
      this.#values[gap] = this.#values[at]
      gap = at
    }
    this.#values[gap] = undefined
    if (this.#size * 16 < this.#values.length && this.#values.length > KEPT) this.#resize(this.#values.length / 4)
    return true
  }

  clear(): void {
    this.#size = 0
    this.#allocate(FEWEST)
  }

  keys(): number[] {
    const keys: number[] = []
    for (const [place, value] of this.#values.entries()) if (value !== undefined) keys.push(this.#keys[place] ?? 0)
    return keys
  }

  values(): T[] {
    const values: T[] = []
    for (const value of this.#values) if (value !== undefined) values.push(value)
    return values
  }

  #home(key: number): number {
    return Math.imul(key, SPREAD) >>> this.#shift
  }

  /** Returns the position of the key, or the free position where it belongs. */
  #place(key: number): number {
    const last = this.#values.length - 1
    let place = this.#home(key)
    while (this.#values[place] !== undefined && this.#keys[place] !== key) place = (place + 1) & last
    return place
  }

  #resize(length: number): void {
    const keys = this.#keys
    const values = this.#values
    this.#allocate(Math.max(length, FEWEST))
    for (const [at, value] of values.entries()) {
      if (value === undefined) continue
      const key = keys[at] ?? 0
      const place = this.#place(key)
      this.#keys[place] = key
      this.#values[place] = value
    }
  }

  #allocate(length: number): void {
    this.#keys = new Float64Array(length)
    this.#values = emptyTable(length)
    this.#shift = 32 - Math.log2(length)
  }
}

function emptyTable<T extends object>(length: number): (T | undefined)[] {
  return Array.from<T | undefined>({ length }).fill(undefined)
}
