/** The number of recently used entries that a full table skips before it removes one anyway. */
const MAX_CHANCES = 16

interface Entry<Value> {
  readonly value: Value
  /** True if the entry was used since it was last skipped. */
  recent: boolean
}

/**
 * Values by keys that callers choose, so their number is not limited. A full table removes an entry
 * that was not used recently (second chance), in constant time.
 */
export class BoundedTable<Value> {
  readonly #limit: number
  readonly #make: () => Value
  readonly #entries = new Map<string, Entry<Value>>()
  #hand: MapIterator<[string, Entry<Value>]>
  #forgotten = 0

  constructor(limit: number, make: () => Value) {
    this.#limit = limit
    this.#make = make
    this.#hand = this.#entries.entries()
  }

  /** The number of entries removed because the table was full. */
  get forgotten(): number {
    return this.#forgotten
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the key's value, and creates it if there is none. */
  of(key: string): Value {
    const known = this.#entries.get(key)
    if (known !== undefined) {
      known.recent = true
      return known.value
    }
    if (this.#entries.size >= this.#limit) this.#forgetOne()
    const value = this.#make()
    this.#entries.set(key, { value, recent: false })
    return value
  }

  peek(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  list(): readonly (readonly [key: string, value: Value])[] {
    return Array.from(this.#entries, ([key, { value }]) => [key, value] as const)
  }

  /**
   * The hand continues from where it stopped: from the beginning it would skip all deleted entries
   * there.
   */
  #forgetOne(): void {
    for (let passed = 0; this.#entries.size > 0;) {
      const next = this.#hand.next()
      if (next.done) {
        this.#hand = this.#entries.entries()
        continue
      }
      const [key, entry] = next.value
      if (entry.recent && passed++ < MAX_CHANCES) {
        entry.recent = false
        continue
      }
      this.#entries.delete(key)
      this.#forgotten++
      return
    }
  }
}
