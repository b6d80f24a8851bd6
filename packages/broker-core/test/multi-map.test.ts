import { expect, test } from 'vitest'

import { MultiMap } from '../src/collections/multi-map.ts'

test('multi-map - a key has its values in the order of their addition, until the last one is deleted', () => {
  const map = new MultiMap<string, number>()
  map.add('a', 2)
  map.add('a', 1)
  map.add('a', 2)
  map.add('b', 3)
  expect([...map.get('a')]).toEqual([2, 1])
  expect([...map.values()]).toEqual([2, 1, 3])
  map.delete('a', 2)
  expect(map.has('a')).toBe(true)
  map.delete('a', 1)
  map.delete('c', 1)
  expect(map.has('a')).toBe(false)
  expect(map.get('a').size).toBe(0)
  map.add('a', 4)
  expect([...map.get('a')]).toEqual([4])
})
