import type { Loaded } from './use-data.ts'
import { useData } from './use-data.ts'

interface PageOf<Item> {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
}

/** The most pages that are read at once. */
const MAX_PAGES = 10

/** Reads all pages of a list that is short enough to be in the page as a whole, up to ten. */
export function usePages<Item>(
  key: string,
  load: (cursor: { readonly cursor?: string }, signal: AbortSignal) => Promise<PageOf<Item>>,
  everyMs: number,
): Loaded<readonly Item[]> {
  return useData(
    key,
    async (signal) => {
      const items: Item[] = []
      let cursor: string | null = null
      for (let page = 0; page < MAX_PAGES; page++) {
        const read: PageOf<Item> = await load(cursor === null ? {} : { cursor }, signal)
        items.push(...read.items)
        cursor = read.next_cursor
        if (cursor === null) break
      }
      return items
    },
    everyMs,
  )
}
