import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import type { ApiError } from './client.ts'
import type { Loaded } from './use-data.ts'
import { toApiError, useData } from './use-data.ts'

/** A page of a list, and where the next one begins; null after the last one. */
export interface PageOf<Item, Cursor = string> {
  readonly items: readonly Item[]
  readonly next_cursor: Cursor | null
}

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

/** Adds further pages to the first one. `more` reads the next page, unless one is being read; `next` is null at the end. */
export function useFurtherPages<Item, Cursor>(options: FurtherOptions<Item, Cursor>) {
  const { key, first, idOf } = options
  const [further, setFurther] = useState<PageOf<Item, Cursor> & { readonly key: string }>()
  const latest = useRef(options)
  latest.current = options
  const reading = useRef<AbortController>(undefined)
  useEffect(
    () => () => {
      reading.current?.abort()
      reading.current = undefined
      setFurther(undefined)
    },
    [key],
  )
  const current = further?.key === key ? further : undefined
  const next = current === undefined ? (first?.next_cursor ?? null) : current.next_cursor
  const more = useCallback(() => {
    if (next === null || reading.current !== undefined) return
    const ended = new AbortController()
    reading.current = ended
    const { load, onError } = latest.current
    load(next, ended.signal).then(
      (page) => {
        if (ended.signal.aborted) return
        reading.current = undefined
        setFurther((old) => ({ ...page, key, items: [...(old?.key === key ? old.items : []), ...page.items] }))
      },
      (cause: unknown) => {
        if (ended.signal.aborted) return
        reading.current = undefined
        onError(toApiError(cause))
      },
    )
  }, [next, key])
  const items = first?.items ?? []
  if (current === undefined) return { items, next, more }
  const shown = new Set(items.map(idOf))
  return { items: [...items, ...current.items.filter((item) => !shown.has(idOf(item)))], next, more }
}
