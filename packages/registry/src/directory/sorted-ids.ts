/** Distinct ids in their order, kept so by binary insertion. */
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

  /** The first so many; all without a limit. */
  first(limit?: number): readonly string[] {
    return this.#ids.slice(0, limit)
  }

  /** Where the id is, or would be. */
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
