/** How many entries in use a full table passes over before it forgets one all the same. */
const MAX_CHANCES = 16

interface Entry<Value> {
  readonly value: Value
  /** Used since it was last passed over. */
  recent: boolean
}

/**
 * Values by keys that callers choose, so as many as they like: past its limit the table forgets an entry that was not
 * used lately (second chance), at a cost that does not grow with its size.
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

  /** How many were forgotten to make room. */
  get forgotten(): number {
    return this.#forgotten
  }

  get size(): number {
    return this.#entries.size
  }

  /** The key's value, made when it has none. */
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

  /** The hand goes on from where it stopped: from the beginning it would pass over all that was deleted there. */
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
