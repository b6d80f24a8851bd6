import { Buffer } from 'node:buffer'

import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import { invalidParameters } from './errors.ts'

/**
 * Pages of a list that may change between two requests: a cursor names the last item of a page, not
 * a position.
 */

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

export const pagingParameters = {
  limit: Type.Optional(
    Type.Integer({
      description: 'The most items of one page.',
      minimum: 1,
      maximum: MAX_LIMIT,
      default: DEFAULT_LIMIT,
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: '`next_cursor` of the previous page. Leave it out for the first page.',
      minLength: 1,
      maxLength: 1024,
    }),
  ),
}

interface PageRequest {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export interface Page<Item> {
  items: Item[]
  /** Null on the last page. */
  next_cursor: string | null
  /** The number of items on all pages. */
  total: number
}

export function pageSchema<Item extends TSchema>(item: Item) {
  return Type.Object({
    items: Type.Array(item),
    next_cursor: nextCursor,
    total: Type.Integer({ minimum: 0, description: 'The number of items on all pages.' }),
  })
}

export const nextCursor = Type.Union([Type.String(), Type.Null()], {
  description: 'The `cursor` of the next page; null on the last page.',
})

export function pageLimit({ limit = DEFAULT_LIMIT }: PageRequest): number {
  return limit
}

/**
 * Returns one page, in the order of the keys; it is empty after the end.
 * @throws ManagementError PARAMETER_INVALID
 */
export function pageOf<Item>(all: readonly Item[], keyOf: (item: Item) => string, request: PageRequest): Page<Item> {
  const after = request.cursor === undefined ? undefined : cursorKey(request.cursor)
  const keyed = all.map((item) => ({ key: keyOf(item), item })).toSorted((a, b) => (a.key < b.key ? -1 : 1))
  const rest = after === undefined ? keyed : keyed.filter(({ key }) => key > after)
  const page = rest.slice(0, pageLimit(request))
  const last = page.at(-1)
  return {
    items: page.map(({ item }) => item),
    next_cursor: last !== undefined && rest.length > page.length ? cursorOf(last.key) : null,
    total: all.length,
  }
}

/** Encodes a key as a cursor, which is opaque so that operators do not build their own. */
export function cursorOf(key: string): string {
  return Buffer.from(key).toString('base64url')
}

/**
 * Returns the key in a cursor.
 * @throws ManagementError PARAMETER_INVALID if the text is not a cursor
 */
export function cursorKey(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString()
  if (cursorOf(key) === cursor) return key
  throw invalidCursor()
}

export function invalidCursor() {
  return invalidParameters([
    { parameter: 'cursor', given: 'not a cursor of this route', allowed: 'next_cursor of the previous page' },
  ])
}
