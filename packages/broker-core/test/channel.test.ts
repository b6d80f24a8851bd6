import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { channelNameProblem, subscriptionPatternProblem } from '@signalbox/broker-core'
import { PatternIndex } from '@signalbox/broker-core/engine'
import { channelListMatcher, channelMatcher } from '@signalbox/broker-core/internal'

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
    ['a\u0000b', 'it holds the control character U+0000'],
    ['a\nb', 'it holds the control character U+000A'],
    ['a\u009bb', 'it holds the control character U+009B'],
    ['safe\u202egnp.exe', 'it holds the control character U+202E'],
    ['a\u2066b', 'it holds the control character U+2066'],
    ['\u200fa', 'it holds the control character U+200F'],
    ['a\u061cb', 'it holds the control character U+061C'],
    // A joiner belongs to the spelling of words and of emoji.
    ['👩\u200d🚀.می\u200cخواهم', undefined],
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

  test('C1 - a pattern may contain * anywhere, and > only at its end', () => {
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

  test('M8 - channels: an index of patterns finds the same matches as one by one, after any additions and removals', () => {
    const steps = fc.array(fc.record({ pattern, id: fc.nat({ max: 3 }), add: fc.boolean() }), { maxLength: 30 })
    fc.assert(
      fc.property(steps, channel, (all, c) => {
        const index = new PatternIndex<string>()
        const there = new Map<string, string>()
        for (const { pattern: p, id, add } of all) {
          const value = `${p} ${id}`
          if (add) index.add(p, value)
          else index.delete(p, value)
          if (add) there.set(value, p)
          else there.delete(value)
        }
        const wanted = [...there].filter(([, p]) => channelMatcher(p)(c)).map(([value]) => value)
        expect(index.matching(c).toSorted()).toEqual(wanted.toSorted())
        expect(index.count(c)).toBe(wanted.length)
        for (const [value, p] of there) index.delete(p, value)
        expect(index).toEqual(new PatternIndex())
      }),
      { seed: 1, numRuns: 500 },
    )
  })
})

/** A glob as plainly as it can be said: for each part of it, how much of the name it may have matched. */
function globReference(glob: readonly string[], name: readonly string[]): boolean {
  let ends = new Set([0])
  for (const symbol of glob) {
    const next = new Set<number>()
    for (const end of ends) {
      if (symbol === '*') for (let at = end; at <= name.length; at++) next.add(at)
      else if (end < name.length && (symbol === '?' || symbol === name[end])) next.add(end + 1)
    }
    ends = next
  }
  return ends.has(name.length)
}

/** Up to `max` parts, or as many as fill a word of the automaton, and more. */
function some(max: number, part: fc.Arbitrary<string>): fc.Arbitrary<string[]> {
  return fc.oneof(fc.array(part, { maxLength: max }), fc.array(part, { minLength: 28, maxLength: 70 }))
}

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

  test('M9 - globs agree with a reference matcher', () => {
    const unit = fc.constantFrom('a', 'b', '.', '🦊')
    const name = some(8, unit).map((parts) => parts.join(''))
    const glob = fc
      .oneof(
        some(6, fc.oneof(unit, fc.constantFrom('*', '?'))),
        some(8, fc.oneof({ weight: 9, arbitrary: fc.constantFrom('?') }, unit, fc.constantFrom('*'))),
      )
      .map((parts) => parts.join(''))
      .filter((pattern) => /[*?]/.test(pattern))
    fc.assert(
      fc.property(glob, name, (p, c) => {
        expect(channelListMatcher(p)(c)).toBe(globReference(Array.from(p), Array.from(c)))
      }),
      { seed: 1, numRuns: 3_000 },
    )
  })

  test('M9 - globs over 10,000 names take the time of reading the names', () => {
    const names = Array.from({ length: 10_000 }, (_, i) => 'a'.repeat(250) + String(i).padStart(5, '0'))
    const matches = channelListMatcher(`*${'a'.repeat(126)}b*`)
    const before = process.cpuUsage()
    expect(names.filter(matches)).toEqual([])
    const { user, system } = process.cpuUsage(before)
    expect(user + system).toBeLessThan(300_000)
  })

  test('M9 - no glob of a caller takes long, and a huge one matches nothing', () => {
    // A regular expression made of this pattern would not come to an end.
    expect(channelListMatcher(`${'*a'.repeat(100)}b`)('a'.repeat(255))).toBe(false)
    expect(channelListMatcher(`${'*a'.repeat(100)}*`)('a'.repeat(255))).toBe(true)
    expect(channelListMatcher('*a'.repeat(1_000_000))('a'.repeat(255))).toBe(false)
    expect(channelListMatcher('*'.repeat(1_000_000))('anything')).toBe(true)
  })
})
