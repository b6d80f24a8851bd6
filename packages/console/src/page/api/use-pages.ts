import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import type { ApiError } from './client.ts'
import { FurtherPages } from './further-pages.ts'
import type { PageOf } from './further-pages.ts'
import type { Loaded } from './use-data.ts'
import { toApiError, useData } from './use-data.ts'

/** The parameter of a route that continues a list; none for its first page. */
export interface CursorQuery {
  readonly cursor: string | undefined
}

/** Reads a page of a route, from its beginning or from a cursor. */
type LoadPage<Item> = (cursor: CursorQuery, signal: AbortSignal) => Promise<PageOf<Item>>

/** Reads the pages of a list, one after the other. */
async function* pagesOf<Item>(load: LoadPage<Item>, signal: AbortSignal): AsyncGenerator<readonly Item[]> {
  let cursor: string | null = null
  do {
    const page: PageOf<Item> = await load({ cursor: cursor ?? undefined }, signal)
    yield page.items
    cursor = page.next_cursor
  } while (cursor !== null)
}

/** The most pages that are read at once. */
const MAX_PAGES = 10

/** Reads all pages of a list that is short enough to be in the page as a whole, up to ten. */
export function usePages<Item>(key: string, load: LoadPage<Item>, everyMs: number): Loaded<readonly Item[]> {
  return useData(
    key,
    async (signal) => {
      const items: Item[] = []
      let pages = 0
      for await (const page of pagesOf(load, signal)) {
        items.push(...page)
        if (++pages === MAX_PAGES) break
      }
      return items
    },
    everyMs,
  )
}

/** Returns the first item that matches, from all pages of a list; undefined if there is none. */
export async function findIn<Item>(
  load: LoadPage<Item>,
  matches: (item: Item) => boolean,
  signal: AbortSignal,
): Promise<Item | undefined> {
  for await (const page of pagesOf(load, signal)) {
    const found = page.find(matches)
    if (found !== undefined) return found
  }
  return undefined
}

interface FurtherOptions<Item, Cursor> {
  /** The parameters of the list as text: further pages of other parameters are dropped. */
  readonly key: string
  /** The first page, which the screen keeps current; undefined before its first answer. */
  readonly first: PageOf<Item, Cursor> | undefined
  readonly load: (cursor: Cursor, signal: AbortSignal) => Promise<PageOf<Item, Cursor>>
  /** Returns the identity of an item. An item that has come to the first page is not listed again. */
  readonly idOf: (item: Item) => unknown
  readonly onError: (error: ApiError) => void
}

/**
 * Adds further pages to the first one. `more` reads the next page, unless one is being read; `next` is null at the end. The list
 * does not change, and `behind` is true, when the first page moved on by more than a page. `restart` drops the further pages.
 */
export function useFurtherPages<Item, Cursor>(options: FurtherOptions<Item, Cursor>) {
  const { key, first, idOf } = options
  const [, setTurn] = useState(0)
  const latest = useRef(options)
  latest.current = options
  const shown = useRef<{ readonly key: string; readonly list: FurtherPages<Item, Cursor> }>(undefined)
  const reading = useRef<AbortController>(undefined)
  useEffect(
    () => () => {
      reading.current?.abort()
      reading.current = undefined
    },
    [key],
  )
  const old = shown.current?.key === key ? shown.current.list : undefined
  const newer = old === undefined || old.first.items === first?.items ? old : first && old.follow(first)
  const list = newer ?? old ?? (first && new FurtherPages(first, idOf))
  shown.current = list && { key, list }
  const next = list?.next ?? null
  const more = useCallback(() => {
    if (next === null || reading.current !== undefined) return
    const ended = new AbortController()
    reading.current = ended
    const { load, onError } = latest.current
    load(next, ended.signal).then(
      (page) => {
        if (ended.signal.aborted) return
        reading.current = undefined
        // The list may have been shortened or begun again meanwhile.
        if (shown.current?.list.next === next) shown.current = { key, list: shown.current.list.with(page) }
        setTurn((turn) => turn + 1)
      },
      (cause: unknown) => {
        if (ended.signal.aborted) return
        reading.current = undefined
        onError(toApiError(cause))
      },
    )
  }, [next, key])
  const restart = useCallback(() => {
    shown.current = undefined
    setTurn((turn) => turn + 1)
  }, [])
  const behind = first !== undefined && list?.first.items !== first.items
  return { items: list?.items ?? [], next, more, behind, restart }
}
