import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { test } from 'vitest'

import { NumberMap } from '../src/entries/internal.ts'

/** Few enough that they meet again, and large ones that fall on the same places. */
const key = fc.oneof(
  fc.integer({ min: 0, max: 40 }),
  fc.nat(8).map((n) => n * 2 ** 32),
  fc.maxSafeNat(),
)

function ascending(a: number, b: number): number {
  return a - b
}

test('number map - any order of set and delete leaves the entries of a Map', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), key), { maxLength: 400 }), (steps) => {
      const map = new NumberMap<{ readonly step: number }>()
      const model = new Map<number, { readonly step: number }>()
      for (const [step, [removes, number]] of steps.entries()) {
        if (removes) {
          assert.equal(map.delete(number), model.delete(number))
        } else {
          map.set(number, { step })
          model.set(number, { step })
        }
        assert.equal(map.size, model.size)
        assert.deepEqual(map.get(number), model.get(number))
      }
      assert.deepEqual(map.keys().toSorted(ascending), [...model.keys()].toSorted(ascending))
      assert.equal(map.values().length, model.size)
      for (const [number, value] of model) assert.deepEqual(map.get(number), value)
    }),
    { seed: 7, numRuns: 300 },
  )
})

test('number map - memory grows and shrinks with the entries', () => {
  const map = new NumberMap<{ readonly n: number }>()
  for (let n = 0; n < 20_000; n++) map.set(n, { n })
  for (let n = 0; n < 20_000; n += 1) if (n % 1_000 !== 0) map.delete(n)
  assert.equal(map.size, 20)
  assert.deepEqual(
    map
      .values()
      .map(({ n }) => n)
      .toSorted(ascending),
    Array.from({ length: 20 }, (_, i) => i * 1_000),
  )
  map.clear()
  assert.deepEqual([map.size, map.keys(), map.has(0)], [0, [], false])
})

test('number map - a key that is not a number is not found', () => {
  const map = new NumberMap<object>()
  map.set(0, {})
  assert.equal(map.get(Number.NaN), undefined)
  assert.equal(map.get(Number.POSITIVE_INFINITY), undefined)
  assert.equal(map.get(0.5), undefined)
})
