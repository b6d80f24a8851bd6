import { closest } from '@signalbox/broker-core/internal'
import { cases } from '@signalbox/testkit/property-cases'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

/** Changes a name by one mistake at a place: a letter that is missing, superfluous, wrong, or swapped with the next. */
function mistake(name: string, kind: number, place: number): string {
  const at = place % name.length
  const [before, letter, after] = [name.slice(0, at), name[at] ?? '', name.slice(at + 1)]
  if (kind === 0) return before + after
  if (kind === 1) return `${before}z${letter}${after}`
  if (kind === 2) return `${before}Z${after}`
  return before + after.slice(0, 1) + letter + after.slice(1)
}

test('text - a name with as many mistakes as are allowed is recognized, in any case of its letters', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[A-Fé_]{8,14}$/), { minLength: 1, maxLength: 4 })
  // A letter between two swapped ones counts as three mistakes, so there is no second mistake next to a swap.
  const mistakes = fc.oneof(
    fc.array(fc.tuple(fc.nat(2), fc.nat(20)), { maxLength: 2 }),
    fc.tuple(fc.tuple(fc.constant(3), fc.nat(20))),
  )
  fc.assert(
    fc.property(names, mistakes, ([name = '', ...others], made) => {
      const typed = made.reduce((text, [kind, place]) => mistake(text, kind, place), name)
      expect(closest(typed.toLowerCase(), [name], made.length)).toBe(name)
      // Another name can be as close, but some name is found.
      expect(closest(typed, [...others, name], made.length)).toBeDefined()
    }),
    { seed: 11, numRuns: cases(2_000) },
  )
})

test('text - a name with more mistakes than are allowed is not recognized', () => {
  expect(closest('HTTP_PROT', ['HTTP_PORT'], 1)).toBe('HTTP_PORT')
  expect(closest('HTTP_PORT_1', ['HTTP_PORT'], 1)).toBeUndefined()
  // The same letters in another order.
  expect(closest('PORT_HTTP', ['HTTP_PORT'], 2)).toBeUndefined()
  expect(closest('éàü', ['abc'], 2)).toBeUndefined()
})
