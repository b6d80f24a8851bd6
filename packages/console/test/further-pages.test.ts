import { expect, test } from 'vitest'

import { FurtherPages } from '../src/page/api/further-pages.ts'
import type { PageOf } from '../src/page/api/further-pages.ts'

/** Returns a page of a list that is ordered newest first. */
function newestFrom(newest: number, length = 4): PageOf<number, number> {
  return { items: Array.from({ length }, (_, n) => newest - n), next_cursor: newest - length }
}

/** Returns a list whose first page and second page were read. */
function twoPages(): FurtherPages<number, number> {
  return new FurtherPages(newestFrom(20), (item) => item).with(newestFrom(16))
}

test('console - messages that newer ones push off the first page stay in the list', () => {
  const later = twoPages().follow(newestFrom(22))
  expect(later?.items).toEqual([22, 21, 20, 19, 18, 17, 16, 15, 14, 13])
  const last = later?.follow(newestFrom(23))
  expect(last?.items).toEqual([23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13])
  expect(last?.next).toBe(12)
})

test('console - a message that was removed from the first page leaves the list', () => {
  const without19 = { items: [21, 20, 18, 17], next_cursor: 16 }
  expect(twoPages().follow(without19)?.items).toEqual([21, 20, 18, 17, 16, 15, 14, 13])
})

test('console - messages that were consumed from the front of a queue leave the list', () => {
  const list = new FurtherPages({ items: [1, 2], next_cursor: 3 }, (item) => item).with({
    items: [3, 4],
    next_cursor: 5,
  })
  expect(list.follow({ items: [2, 3], next_cursor: 4 })?.items).toEqual([2, 3, 4])
  expect(list.follow({ items: [3, 4], next_cursor: 5 })?.items).toEqual([3, 4])
})

test('console - a first page that reaches the end is the whole list', () => {
  expect(twoPages().follow({ items: [21], next_cursor: null })?.items).toEqual([21])
})

test('console - a list does not join a first page that moved on by more than a page', () => {
  expect(twoPages().follow(newestFrom(30))).toBeUndefined()
})

test('console - a list that stays open keeps at most 10,000 items of further pages, and reads the rest again', () => {
  let list: FurtherPages<number, number> | undefined = twoPages()
  for (let newest = 120; newest <= 20_020; newest += 100) list = list?.follow(newestFrom(newest, 104))
  expect(list?.items).toHaveLength(10_104)
  expect(list?.next).toBe(20_020 - 10_104)
})
