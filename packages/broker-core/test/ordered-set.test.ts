import assert from 'node:assert/strict'
import { test } from 'vitest'

import { OrderedSet } from '../src/entries/internal.ts'

test('ordered set - members keep the order of their addition when others are removed', () => {
  const set = new OrderedSet<string>()
  const entries = ['a', 'b', 'c', 'd'].map((name) => set.add(name))
  entries[1]?.remove()
  entries[3]?.remove()
  set.add('e')
  assert.deepEqual(set.members(), ['a', 'c', 'e'])
  assert.equal(set.size, 3)
  entries[0]?.remove()
  assert.equal(set.first, 'c')
})

test('ordered set - an entry is removed once, and an emptied set works like a new one', () => {
  const set = new OrderedSet<string>()
  const entry = set.add('a')
  assert.equal(entry.remove(), true)
  assert.equal(entry.remove(), false)
  assert.equal(set.size, 0)
  assert.equal(set.first, undefined)
  set.add('b')
  assert.equal(entry.remove(), false)
  assert.deepEqual(set.members(), ['b'])
})
