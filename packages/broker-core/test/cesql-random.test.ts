import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { CesqlExpression } from '@signalbox/broker-core/internal'
import { CesqlParseError, compileCesql } from '@signalbox/broker-core/internal'

import { run } from './cesql-run.ts'

const words = (...of: string[]) => fc.array(fc.constantFrom(...of), { maxLength: 12 }).map((parts) => parts.join(''))

test('cesql - LIKE agrees with a naive matcher', () => {
  const halves = ['\u{d83d}', '\u{de42}']
  const text = words('a', 'b', '%', '_', '🙂', ...halves)
  const pattern = fc.oneof(words('a', 'b', '🙂', '%', '_', '\\%', '\\_', ...halves), words('a', 'b', '%', '\\_'))
  fc.assert(
    fc.property(text, pattern, (value, pattern) => {
      const { value: matched } = run(`x LIKE '${pattern}'`, { x: value })
      expect(matched).toBe(naiveLike(Array.from(value), pattern.match(/\\[%_]|[^]/gu) ?? []))
    }),
    { seed: 7, numRuns: 5000 },
  )
})

test('cesql - LIKE finds long literals and long runs', () => {
  const length = fc.integer({ min: 0, max: 600 })
  fc.assert(
    fc.property(length, length, length, fc.constantFrom('', '_', '%'), (before, after, wanted, one) => {
      const x = `${'a'.repeat(before)}b${'a'.repeat(after)}`
      const least = wanted + (one === '_' ? 1 : 0)
      expect(run(`x LIKE '%${'a'.repeat(wanted)}${one}b%'`, { x }).value).toBe(before >= least)
      expect(run(`x LIKE '%b${one}${'a'.repeat(wanted)}'`, { x }).value).toBe(
        one === '%' ? after >= wanted : after === least,
      )
    }),
    { seed: 17, numRuns: 500 },
  )
})

/** LIKE as plainly as it can be said. */
function naiveLike(text: readonly string[], pattern: readonly string[]): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return text.length === 0
  if (first === '%') return naiveLike(text, rest) || (text.length > 0 && naiveLike(text.slice(1), pattern))
  return text.length > 0 && (first === '_' || text[0] === first.replace('\\', '')) && naiveLike(text.slice(1), rest)
}

describe('any expression', () => {
  const word = fc.constantFrom(
    'id',
    'absent',
    'AND',
    'OR',
    'XOR',
    'NOT',
    'LIKE',
    'IN',
    'EXISTS',
    'TRUE',
    '(',
    ')',
    ',',
    '=',
    '!=',
    '<',
    '+',
    '-',
    '*',
    '/',
    '%',
    '7',
    '0',
    '2147483647',
    `'a%'`,
    `"7"`,
    'LEFT(',
    'SUBSTRING(',
    'CONCAT(',
    'ABS(',
    '<>',
  )
  test.each<[string, fc.Arbitrary<string>]>([
    ['characters', fc.string({ unit: 'grapheme', maxLength: 40 })],
    ['words', fc.array(word, { maxLength: 12 }).map((words) => words.join(' '))],
  ])('cesql - random %s either fail to parse or evaluate without throwing', (_, expressions) => {
    fc.assert(
      fc.property(expressions, (expression) => {
        const compiled = parsed(expression)
        if (!compiled) return
        const { value } = compiled.evaluate((name) => (name === 'id' ? '12' : undefined))
        const types = compiled.type === 'any' ? ['string', 'boolean'] : [compiled.type]
        expect(types).toContain(typeof value === 'number' ? 'integer' : typeof value)
      }),
      { seed: 11, numRuns: 5000 },
    )
  })

  test('cesql - random logic and arithmetic agree with a reference', () => {
    const { tree } = fc.letrec<{ tree: Tree; not: Tree; sums: Tree; both: Tree }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom({ text: 'TRUE', value: true }, { text: 'FALSE', value: false }),
        tie('sums'),
        tie('not'),
        tie('both'),
      ),
      not: tie('tree').map(({ text, value }) => ({ text: `NOT (${text})`, value: !value })),
      sums: fc.tuple(SUM, SUM).map(([a, b]) => ({ text: `${a.text} <= (${b.text})`, value: a.value <= b.value })),
      both: fc.tuple(tie('tree'), fc.constantFrom('AND', 'OR', 'XOR'), tie('tree')).map(([a, operator, b]) => ({
        text: `(${a.text}) ${operator} (${b.text})`,
        value: operator === 'AND' ? a.value && b.value : operator === 'OR' ? a.value || b.value : a.value !== b.value,
      })),
    }))
    fc.assert(
      fc.property(tree, ({ text, value }) => {
        expect(run(text)).toEqual({ value, error: undefined })
      }),
      { seed: 13, numRuns: 2000 },
    )
  })
})

/** The compiled expression; undefined when it is none, which is the only way to fail. */
function parsed(expression: string): CesqlExpression | undefined {
  try {
    return compileCesql(expression)
  } catch (error) {
    if (error instanceof CesqlParseError) return undefined
    throw error
  }
}

interface Tree {
  readonly text: string
  readonly value: boolean
}

const NUMBER = fc.integer({ min: -50, max: 50 })

const SUM = fc.tuple(NUMBER, fc.constantFrom('+', '-', '*'), NUMBER).map(([a, operator, b]) => ({
  text: `${a} ${operator} ${b}`,
  value: operator === '+' ? a + b : operator === '-' ? a - b : a * b,
}))
