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
  #forgotten = 0

  constructor(limit: number, make: () => Value) {
    this.#limit = limit
    this.#make = make
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
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      if (this.#entries.size >= this.#limit) this.#forgetOne()
      this.#entries.set(key, (entry = { value: this.#make(), recent: true }))
    }
    entry.recent = true
    return entry.value
  }

  peek(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  list(): readonly (readonly [key: string, value: Value])[] {
    return Array.from(this.#entries, ([key, { value }]) => [key, value] as const)
  }

  clear(): void {
    this.#entries.clear()
  }

  #forgetOne(): void {
    let passed = 0
    for (const [key, entry] of this.#entries) {
      this.#entries.delete(key)
      if (!entry.recent || ++passed > MAX_CHANCES) {
        this.#forgotten++
        return
      }
      entry.recent = false
      this.#entries.set(key, entry)
    }
  }
}
