import { describe, expect, test } from 'vitest'

import { CesqlParseError, compileCesql } from '@signalbox/broker-core/internal'

import { run } from './cesql-run.ts'

describe('what is no expression', () => {
  test.each([
    ['', 'expected a value, but the expression ends (at character 1)'],
    ['   ', 'expected a value, but the expression ends (at character 4)'],
    ['id =', 'expected a value, but the expression ends (at character 5)'],
    ['= 1', 'expected a value, but found "=" (at character 1)'],
    ['id type', 'expected an operator or the end, but found "type" (at character 4)'],
    ['(1', 'expected an operator or ), but the expression ends (at character 3)'],
    ['1)', 'expected an operator or the end, but found ")" (at character 2)'],
    ['NOT', 'expected a value, but the expression ends (at character 4)'],
    ['1 NOT = 2', 'expected an operator or the end, but found "NOT" (at character 3)'],
    ['id LIKE type', 'expected a string, the pattern of LIKE, but found "type" (at character 9)'],
    [`id LIKE CONCAT('a')`, 'expected a string, the pattern of LIKE, but found "CONCAT" (at character 9)'],
    ['id LIKE 12', 'expected a string, the pattern of LIKE, but found "12" (at character 9)'],
    ['id IN ()', 'expected a value, but found ")" (at character 8)'],
    ['id IN 1', 'expected ( and the values of IN, but found "1" (at character 7)'],
    ['id IN (1', 'expected an operator, a comma or ), but the expression ends (at character 9)'],
    ['EXISTS', 'expected the name of an attribute, but the expression ends (at character 7)'],
    ['EXISTS (id)', 'expected the name of an attribute, but found "(" (at character 8)'],
    [
      'orderId = 1',
      '"orderId" cannot be the name of an attribute: allowed are lower-case letters and digits (at character 1)',
    ],
    [
      'order_id = 1',
      '"order_id" cannot be the name of an attribute: allowed are lower-case letters and digits (at character 1)',
    ],
    ['ce.type = 1', 'unexpected character "." (at character 3)'],
    ['id = 🙂', 'unexpected character "🙂" (at character 6)'],
    [`id = 'open`, "a string that begins with ' does not end (at character 6)"],
    [`id = "open\\"`, 'a string that begins with " does not end (at character 6)'],
    ['2147483648', 'an integer is outside -2147483648 … 2147483647 (at character 1)'],
    ['-2147483649', 'an integer is outside -2147483648 … 2147483647 (at character 1)'],
    ['+ 1', 'expected a value, but found "+" (at character 1)'],
    ['1_x(2)', '"1_x" cannot be the name of a function (at character 1)'],
    [`'a' || 'b'`, 'unexpected character "|" (at character 5)'],
    ['(('.repeat(40), 'the expression nests deeper than 64 (at character 65)'],
    ['NOT '.repeat(70), 'the expression nests deeper than 64 (at character 257)'],
    [Array(502).fill('1').join('+'), 'the expression has more than 500 operators (at character 1004)'],
    ['1'.repeat(4097), 'the expression has 4097 characters; at most 4096 are allowed (at character 4097)'],
  ])('cesql - %s', (expression, message) => {
    const error = failure(expression)
    expect(error.message).toBe(message)
    expect(error.kind).toBe('parse')
  })

  test.each([
    ['NOW()', 'there is no function NOW; the functions are LENGTH, CONCAT, '],
    ['CONCAT_WS()', 'there is no function CONCAT_WS of 0 arguments; it takes 1 or more (at character 1)'],
    [`1 = LENGTH('a', 'b')`, 'there is no function LENGTH of 2 arguments; it takes 1 (at character 5)'],
    [`SUBSTRING('a')`, 'there is no function SUBSTRING of 1 arguments; it takes 2 to 3 (at character 1)'],
  ])('cesql - %s is a missing function', (expression, message) => {
    const error = failure(expression)
    expect(error.message).toContain(message)
    expect(error.kind).toBe('missingFunction')
  })

  test('cesql - the largest expressions compile and run', () => {
    expect(run(Array(501).fill('1').join('+')).value).toBe(501)
    expect(run(`${'('.repeat(63)}1${')'.repeat(63)}`).value).toBe(1)
  })

  test("cesql - the type of an expression's result is known before evaluation", () => {
    expect(compileCesql('id = 1').type).toBe('boolean')
    expect(compileCesql('1 + id').type).toBe('integer')
    expect(compileCesql('LOWER(id)').type).toBe('string')
    expect(compileCesql('id').type).toBe('any')
  })
})

function failure(expression: string): CesqlParseError {
  try {
    compileCesql(expression)
  } catch (error) {
    if (error instanceof CesqlParseError) return error
    throw error
  }
  throw new Error(`${expression} compiled`)
}
