/** Distinct ids in order, maintained by binary insertion. */
export class SortedIds {
  readonly #ids: string[] = []

  get size(): number {
    return this.#ids.length
  }

  add(id: string): void {
    const at = this.#placeOf(id)
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id)
  }

  delete(id: string): void {
    const at = this.#placeOf(id)
    if (this.#ids[at] === id) this.#ids.splice(at, 1)
  }

  /** Returns the first `limit` ids after a given id; without a limit, all of them. */
  first(limit?: number, after?: string): readonly string[] {
    const from = after === undefined ? 0 : this.#placeAfter(after)
    return this.#ids.slice(from, limit === undefined ? undefined : from + limit)
  }

  #placeAfter(id: string): number {
    const at = this.#placeOf(id)
    return this.#ids[at] === id ? at + 1 : at
  }

  /** Returns the index of the id, or the index at which it would be inserted. */
  #placeOf(id: string): number {
    let low = 0
    let high = this.#ids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#ids[middle]
      if (other !== undefined && other < id) low = middle + 1
      else high = middle
    }
    return low
  }
}
