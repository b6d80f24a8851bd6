import { expect, test } from 'vitest'

import { FailedAttempts } from '../src/delivery/failed-attempts.ts'
import { BUFFERED_ITEMS } from '../src/sources/limits.ts'

test('failed attempts - are counted by message, and go on from the stored counts', () => {
  const attempts = new FailedAttempts([['a', 2]])
  attempts.add([{ name: 'a' }, { name: 'b' }])
  expect([attempts.of({ name: 'a' }), attempts.of({ name: 'b' }), attempts.of({ name: 'c' })]).toEqual([3, 1, 0])
  attempts.forget([{ name: 'a' }])
  expect(attempts.stored).toEqual([['b', 1]])
})

test('failed attempts - messages that are never tried again do not fill the memory', () => {
  const attempts = new FailedAttempts()
  attempts.add([{ name: 'again' }])
  for (let n = 0; n < 10 * BUFFERED_ITEMS; n++) attempts.add([{ name: `gone-${n}` }, { name: 'again' }])
  expect(attempts.stored).toHaveLength(BUFFERED_ITEMS)
  expect(attempts.of({ name: 'again' })).toBe(10 * BUFFERED_ITEMS + 1)
})
