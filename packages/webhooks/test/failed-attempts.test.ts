import { expect, test } from 'vitest'

import { FailedAttempts } from '../src/delivery/failed-attempts.ts'
import { MAX_UNDER_WAY } from '../src/sources/limits.ts'

test('failed attempts - are counted by message, and go on from the stored counts', () => {
  const attempts = new FailedAttempts([['a', 2, 100]])
  attempts.add([{ name: 'a' }, { name: 'b' }], 500)
  expect([attempts.of({ name: 'a' }), attempts.of({ name: 'b' }), attempts.of({ name: 'c' })]).toEqual([3, 1, 0])
  attempts.forget([{ name: 'a' }])
  expect(attempts.stored).toEqual([['b', 1, 500]])
})

test('failed attempts - the time of the first attempt stays', () => {
  const attempts = new FailedAttempts([['a', 2, 100]])
  attempts.add([{ name: 'a' }, { name: 'b' }], 500)
  attempts.add([{ name: 'b' }], 700)
  expect([attempts.since({ name: 'a' }), attempts.since({ name: 'b' })]).toEqual([100, 500])
  expect(attempts.since({ name: 'c' })).toBeUndefined()
})

test('failed attempts - messages that are never tried again do not fill the memory', () => {
  const attempts = new FailedAttempts()
  attempts.add([{ name: 'again' }], 1)
  const failures = 2 * MAX_UNDER_WAY
  for (let n = 0; n < failures; n++) attempts.add([{ name: `gone-${n}` }, { name: 'again' }], n)
  expect(attempts.stored).toHaveLength(MAX_UNDER_WAY)
  expect(attempts.of({ name: 'again' })).toBe(failures + 1)
})
