/** The first items of a list in an order, without sorting the list: a page of a long list. */
export class FirstInOrder<Item> {
  readonly #limit: number
  readonly #compare: (a: Item, b: Item) => number
  readonly #items: Item[] = []

  constructor(limit: number, compare: (a: Item, b: Item) => number) {
    this.#limit = limit
    this.#compare = compare
  }

  add(item: Item): void {
    const items = this.#items
    const last = items.at(-1)
    if (items.length === this.#limit && last !== undefined && this.#compare(last, item) <= 0) return
    let from = 0
    let to = items.length
    while (from < to) {
      const middle = (from + to) >>> 1
      const other = items[middle]
      if (other !== undefined && this.#compare(other, item) <= 0) from = middle + 1
      else to = middle
    }
    items.splice(from, 0, item)
    if (items.length > this.#limit) items.pop()
  }

  list(): readonly Item[] {
    return this.#items
  }
}
