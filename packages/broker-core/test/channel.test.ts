import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import {
  channelListMatcher,
  channelMatcher,
  channelNameProblem,
  subscriptionPatternProblem,
} from '@signalbox/broker-core'

describe('channel names', () => {
  test.each([
    ['orders', undefined],
    ['orders.eu.new', undefined],
    ['größe 🙂 x', undefined],
    ['a*b.c>d', undefined],
    ['_AGENTS_', undefined],
    ['x'.repeat(255), undefined],
    ['', 'it is empty'],
    ['x'.repeat(256), 'it is longer than 255 bytes'],
    ['ü'.repeat(128), 'it is longer than 255 bytes'],
    ['x'.repeat(10_000), 'it is longer than 255 bytes'],
    ['a\u0000b', 'it holds a control character'],
    ['a\nb', 'it holds a control character'],
    ['\ud800', 'it is not valid Unicode'],
    [' a', 'it begins or ends with a blank'],
    ['a ', 'it begins or ends with a blank'],
    ['a..b', 'it has an empty part before, between or after dots'],
    ['.a', 'it has an empty part before, between or after dots'],
    ['a.', 'it has an empty part before, between or after dots'],
    ['a.*', 'its part * is a wildcard, which only subscriptions to events may use'],
    ['>', 'its part > is a wildcard, which only subscriptions to events may use'],
  ])('C1 - %j: %s', (name, problem) => {
    expect(channelNameProblem(name)).toBe(problem)
  })

  test('C1 - a pattern may hold * anywhere and > at its end only', () => {
    expect(subscriptionPatternProblem('a.*.b.>')).toBeUndefined()
    expect(subscriptionPatternProblem('>.a')).toBe('the wildcard > is not its last part')
  })
})

/** The rules of wildcards as plainly as they can be said. */
function reference([p, ...ps]: string[], [c, ...cs]: string[]): boolean {
  if (p === undefined || c === undefined) return p === c
  if (p === '>') return true
  return (p === '*' || p === c) && reference(ps, cs)
}

describe('subscription patterns', () => {
  const token = fc.constantFrom('a', 'b', 'cc', '_AGENTS_')
  const channel = fc.array(token, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'))
  const pattern = fc
    .tuple(fc.array(fc.oneof(token, fc.constant('*')), { maxLength: 3 }), fc.constantFrom(undefined, '>', 'a'))
    .map(([parts, last]) => [...parts, ...(last ? [last] : [])].join('.'))
    .filter((p) => p !== '')

  test('M8 - wildcards agree with a reference matcher and never reach internal channels', () => {
    fc.assert(
      fc.property(pattern, channel, (p, c) => {
        const hidden = c.startsWith('_AGENTS_.') && !p.startsWith('_AGENTS_.')
        expect(channelMatcher(p)(c)).toBe(!hidden && reference(p.split('.'), c.split('.')))
      }),
      { seed: 1, numRuns: 2_000 },
    )
  })
})

describe('channel_list patterns', () => {
  test.each([
    ['orders', 'orders.eu', true],
    ['orders', 'my.orders', false],
    ['*.eu', 'orders.new.eu', true],
    ['order?', 'orders', true],
    ['order?', 'order', false],
    ['a.b', 'axb', false],
    ['a[b]*', 'a[b]c', true],
    ['', 'anything', true],
  ])('M9 - %j over %j: %s', (pattern, name, matches) => {
    expect(channelListMatcher(pattern)(name)).toBe(matches)
  })

  test('M9 - globs agree with a regular expression', () => {
    const unit = fc.constantFrom('a', 'b', '.', '🦊')
    const name = fc.array(unit, { maxLength: 8 }).map((parts) => parts.join(''))
    const glob = fc
      .array(fc.oneof(unit, fc.constantFrom('*', '?')), { maxLength: 6 })
      .map((parts) => parts.join(''))
      .filter((pattern) => /[*?]/.test(pattern))
    fc.assert(
      fc.property(glob, name, (p, c) => {
        const source = p
          .replaceAll('.', String.raw`\.`)
          .replaceAll('*', '.*')
          .replaceAll('?', '.')
        expect(channelListMatcher(p)(c)).toBe(new RegExp(`^${source}$`, 'su').test(c))
      }),
      { seed: 1, numRuns: 5_000 },
    )
  })

  test('M9 - no glob of a caller takes long, and a huge one matches nothing', () => {
    // A regular expression made of this pattern would not come to an end.
    expect(channelListMatcher(`${'*a'.repeat(100)}b`)('a'.repeat(255))).toBe(false)
    expect(channelListMatcher(`${'*a'.repeat(100)}*`)('a'.repeat(255))).toBe(true)
    expect(channelListMatcher('*a'.repeat(1_000_000))('a'.repeat(255))).toBe(false)
    expect(channelListMatcher('*'.repeat(1_000_000))('anything')).toBe(true)
  })
})
