/** A page of a list, and where the next one begins; null after the last one. */
export interface PageOf<Item, Cursor = string> {
  readonly items: readonly Item[]
  readonly next_cursor: Cursor | null
}

/** The most items of further pages that stay when the first page moves on: a screen may be open for days. */
const MAX_ITEMS = 10_000

/** A first page that changes, and the pages that were read after it: each begins where the one before it ends. */
export class FurtherPages<Item, Cursor> {
  readonly first: PageOf<Item, Cursor>
  /** The items of all pages in their order, each once. */
  readonly items: readonly Item[]
  /** The position at which the next page begins; null at the end of the list. */
  readonly next: Cursor | null
  readonly #further: readonly PageOf<Item, Cursor>[]
  readonly #idOf: (item: Item) => unknown

  /** @param idOf Returns the identity of an item. An item that is on two pages is listed on the first of them. */
  constructor(
    first: PageOf<Item, Cursor>,
    idOf: (item: Item) => unknown,
    further: readonly PageOf<Item, Cursor>[] = [],
  ) {
    const items = new Map<unknown, Item>()
    for (const page of [first, ...further])
      for (const item of page.items) if (!items.has(idOf(item))) items.set(idOf(item), item)
    this.first = first
    this.items = [...items.values()]
    this.next = (further.at(-1) ?? first).next_cursor
    this.#further = further
    this.#idOf = idOf
  }

  /** Returns the list with one more page at its end. */
  with(page: PageOf<Item, Cursor>): FurtherPages<Item, Cursor> {
    return new FurtherPages(this.first, this.#idOf, [...this.#further, page])
  }

  /**
   * Returns the list with a newer first page. Items that newer ones pushed off the first page become a further page.
   * Undefined if the newer page shares no item with the list: there may be items between them that were never read.
   */
  follow(first: PageOf<Item, Cursor>): FurtherPages<Item, Cursor> | undefined {
    if (this.#further.length === 0 || first.next_cursor === null) return new FurtherPages(first, this.#idOf)
    const ids = new Set(first.items.map(this.#idOf))
    if (ids.size > 0 && !this.items.some((item) => ids.has(this.#idOf(item)))) return undefined
    // Items that are missing before one that is still there were removed. Those after the last one were pushed off.
    const last = this.first.items.findLastIndex((item) => ids.has(this.#idOf(item)))
    const pushed = last === -1 ? [] : this.first.items.slice(last + 1)
    const further = [...this.#further]
    if (pushed.length > 0) further.unshift({ items: pushed, next_cursor: this.first.next_cursor })
    let count = further.reduce((sum, { items }) => sum + items.length, 0)
    while (pushed.length > 0 && count > MAX_ITEMS) count -= further.pop()?.items.length ?? 0
    return new FurtherPages(first, this.#idOf, further)
  }
}
