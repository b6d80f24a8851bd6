const NO_VALUES: ReadonlySet<never> = new Set()

/** Sets of values by key, in the order of their addition. A key without values takes no memory. */
export class MultiMap<Key, Value> {
  readonly #sets = new Map<Key, Set<Value>>()

  /** Returns the values of a key. Do not keep the set: it may be replaced when the key becomes empty. */
  get(key: Key): ReadonlySet<Value> {
    return this.#sets.get(key) ?? NO_VALUES
  }

  has(key: Key): boolean {
    return this.#sets.has(key)
  }

  /** Iterates the keys that have values. */
  keys(): IterableIterator<Key> {
    return this.#sets.keys()
  }

  /** Iterates the values of all keys. */
  *values(): Generator<Value> {
    for (const values of this.#sets.values()) yield* values
  }

  add(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    if (values === undefined) this.#sets.set(key, new Set([value]))
    else values.add(value)
  }

  delete(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    values?.delete(value)
    if (values?.size === 0) this.#sets.delete(key)
  }
}
