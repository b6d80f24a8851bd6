import { isDeepStrictEqual } from 'node:util'

import { Ajv2020 } from 'ajv/dist/2020.js'
import {
  anything,
  array,
  assert,
  constantFrom,
  integer,
  jsonValue,
  letrec,
  oneof,
  property,
  record,
  uniqueArray,
} from 'fast-check'
import { describe, expect, test } from 'vitest'

import { BodySchema } from '../src/settings/schema/body-schema.ts'
import { SchemaReader } from '../src/settings/schema/json-schema.ts'
import { LinearPattern } from '../src/settings/schema/linear-pattern.ts'

const TOO_MUCH = [{ pointer: '', problem: 'is too large or nested too deep to be checked against this schema' }]

const list = (part: (index: number) => unknown, count = 900) => Array.from({ length: count }, (_, index) => part(index))

const problemsOf = (schema: unknown, value: unknown) => new BodySchema(schema).problems(value)

describe('schemas - problems', () => {
  test('each has the JSON pointer of its part and a short text', () => {
    const schema = {
      type: 'object',
      properties: {
        url: { type: 'string', maxLength: 10 },
        'a/b': { items: { type: 'integer', minimum: 1 } },
        mode: { enum: ['fast', 'good'] },
      },
      required: ['url', 'mode'],
      additionalProperties: false,
    }
    expect(problemsOf(schema, { url: 'x', mode: 'fast', 'a/b': [1] })).toEqual([])
    expect(problemsOf(schema, { url: 'x'.repeat(11), 'a/b': [0, 'y'], extra: 1 })).toEqual([
      { pointer: '', problem: 'must have "mode", which is missing' },
      { pointer: '/url', problem: 'must have at most 10 characters' },
      { pointer: '/a~1b/0', problem: 'must be at least 1' },
      { pointer: '/a~1b/1', problem: 'must be integer, not string' },
      { pointer: '/extra', problem: 'is not allowed; allowed are url, a/b, mode' },
    ])
  })

  test('alternatives say why each does not match', () => {
    const schema = { properties: { size: { anyOf: [{ type: 'integer' }, { enum: ['small', 'large'] }] } } }
    expect(problemsOf(schema, { size: 'small' })).toEqual([])
    expect(problemsOf(schema, { size: 1.5 })).toEqual([
      {
        pointer: '/size',
        problem: 'matches none of 2 schemas: must be integer, not number; or must be "small" or "large"',
      },
    ])
  })

  test('are ten at most, and never repeat large values or names', () => {
    const name = 'n'.repeat(100_000)
    const problems = problemsOf({ additionalProperties: { type: 'integer' } }, { [name]: 'v'.repeat(100_000) })
    expect(JSON.stringify(problems).length).toBeLessThan(400)
    expect(
      problemsOf(
        { items: { type: 'integer' } },
        Array.from({ length: 50 }, () => 'x'),
      ),
    ).toHaveLength(10)
  })
})

/** Schemas over the keywords that are supported, and values that often match them. */
const { schema } = letrec((tie) => ({
  schema: oneof(
    { depthSize: 'small', withCrossShrink: true },
    constantFrom<unknown>(true, false, {}),
    record({ type: constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object') }),
    record({
      enum: uniqueArray(jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 3, comparator: isDeepStrictEqual }),
    }),
    record({ const: constantFrom<unknown>(0, 'a', null, [1], { a: 1 }) }),
    record({
      minimum: integer({ min: -2, max: 2 }),
      exclusiveMaximum: integer({ min: -2, max: 4 }),
      multipleOf: constantFrom(1, 2),
    }),
    record({
      minLength: integer({ min: 0, max: 2 }),
      maxLength: integer({ min: 0, max: 4 }),
      pattern: constantFrom('^a', 'b$', '[ab]+'),
    }),
    record({
      minItems: integer({ min: 0, max: 2 }),
      maxItems: integer({ min: 0, max: 4 }),
      uniqueItems: constantFrom(true, false),
    }),
    record({ minProperties: integer({ min: 0, max: 2 }), maxProperties: integer({ min: 0, max: 3 }) }),
    record({ prefixItems: array(tie('schema'), { minLength: 1, maxLength: 2 }), items: tie('schema') }),
    record({
      contains: tie('schema'),
      minContains: integer({ min: 0, max: 2 }),
      maxContains: integer({ min: 0, max: 2 }),
    }),
    record(
      { properties: record({ a: tie('schema'), b: tie('schema') }), required: uniqueArray(constantFrom('a', 'b')) },
      { requiredKeys: ['properties'] },
    ),
    record({
      properties: record({ a: tie('schema') }),
      patternProperties: record({ '^b': tie('schema') }),
      additionalProperties: tie('schema'),
      propertyNames: constantFrom({ maxLength: 2 }),
    }),
    record({
      dependentRequired: record({ a: uniqueArray(constantFrom('b', 'c')) }),
      dependentSchemas: record({ b: tie('schema') }),
    }),
    record({ allOf: array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    record({ anyOf: array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    record({ oneOf: array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    record({ not: tie('schema') }),
    // oxlint-disable-next-line no-thenable -- a keyword
    record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }),
    record({ $defs: record({ x: tie('schema') }), $ref: constantFrom('#/$defs/x') }),
  ),
}))

const value = letrec((tie) => ({
  value: oneof(
    { depthSize: 'small' },
    constantFrom<unknown>(null, true, 0, 1, 2, 1.5, 'a', 'ab', 'b', ''),
    array(tie('value'), { maxLength: 4 }),
    record({ a: tie('value'), b: tie('value'), c: tie('value') }, { requiredKeys: [] }),
  ),
})).value

/** Objects as JSON.parse makes them: ajv tells others apart by their prototypes. */
const asParsed = (body: unknown): unknown => JSON.parse(JSON.stringify(body))

test('schemas - a body matches if ajv says so', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  let matches = 0
  assert(
    property(schema, value.map(asParsed), (given, body) => {
      // References of schemas within schemas would lead to the outermost one.
      if (
        JSON.stringify(given).split('$ref').length > 2 ||
        (JSON.stringify(given).includes('$ref') && !Object.hasOwn(Object(given), '$ref'))
      )
        return
      const expected = ajv.validate(given as object, body)
      const own = given as { $ref?: string }
      // Bounds beside the patterns are a rule of ours.
      const reader = new SchemaReader(own)
      expect(reader.problems).toEqual([])
      if (expected) matches++
      expect(problemsOf(own, body).length === 0).toBe(expected)
    }),
    { numRuns: 600, seed: 7 },
  )
  expect(matches).toBeGreaterThan(100)
})

test('schemas - linear patterns match as those of JavaScript', () => {
  const atom = constantFrom(
    'a',
    'b',
    '.',
    '[ab]',
    '[^a]',
    '\\d',
    '\\w',
    '(a|b)',
    '(?:ab)',
    '(?<n>b)',
    '^',
    '$',
    '\\b',
    '😀',
    '\\u0061',
    '\\.',
    '[\\]a]',
  )
  const quantifier = constantFrom('', '', '*', '+', '?', '{2}', '{1,3}', '{0,}', '*?', '+?')
  const part = record({ atom, quantifier }).map(({ atom: a, quantifier: q }) => (/^(\^|\$|\\b)$/.test(a) ? a : a + q))
  const source = array(oneof(part, constantFrom('|')), { maxLength: 6 }).map((parts) =>
    parts.join('').replaceAll('(?<n>b)', '(?:b)'),
  )
  const text = array(constantFrom('a', 'b', '1', '.', ' ', '😀', ']', '\n'), { maxLength: 8 }).map((parts) =>
    parts.join(''),
  )
  assert(
    property(source, text, (pattern, given) => {
      expect([pattern, given, new LinearPattern(pattern).test(given)]).toEqual([
        pattern,
        given,
        new RegExp(pattern, 'u').test(given),
      ])
    }),
    { numRuns: 5_000, seed: 11 },
  )
})

describe('schemas - limits', () => {
  const nested = (depth: number): unknown => (depth === 0 ? {} : { a: nested(depth - 1) })

  test('an expression that needs centuries is refused by its text in no time', () => {
    const steps: number[] = []
    expect(new LinearPattern('^(a+)+$').test(`${'a'.repeat(255)}!`, (count) => steps.push(count))).toBe(false)
    expect(steps.reduce((sum, count) => sum + count, 0)).toBeLessThan(5_000)
  })

  test.each([
    [
      'references that double at each level',
      {
        $ref: '#/$defs/n',
        $defs: { n: { properties: { a: { oneOf: [{ $ref: '#/$defs/n' }, { $ref: '#/$defs/n' }] } } } },
      },
      nested(100),
    ],
    [
      'alternatives of alternatives',
      {
        $ref: '#/$defs/d30',
        $defs: Object.fromEntries(
          list(
            (index) => [
              `d${index}`,
              index === 0
                ? { type: 'null' }
                : { anyOf: [{ $ref: `#/$defs/d${index - 1}` }, { $ref: `#/$defs/d${index - 1}` }] },
            ],
            31,
          ) as [string, unknown][],
        ),
      },
      1,
    ],
    [
      'many alternatives for many items',
      { items: { anyOf: list((index) => ({ const: index })) } },
      list(() => 'x', 10_000),
    ],
    ['many sets of unique items', { allOf: list(() => ({ uniqueItems: true })) }, list((index) => index, 10_000)],
    ['many texts to count', { allOf: list(() => ({ maxLength: 300_000 })) }, '😀'.repeat(250_000)],
    [
      'many patterns',
      { items: { allOf: list((index) => ({ maxLength: 256, pattern: `^([a-z]+)*[0-9]{0,${index}}$` }), 60) } },
      list(() => 'a'.repeat(256), 1_000),
    ],
  ])('the check ends: %s', (_, given, body) => {
    expect(problemsOf(given, body)).toEqual(TOO_MUCH)
  })

  test('an ordinary large body is within the limit', () => {
    const user = {
      type: 'object',
      properties: { id: { type: 'integer' }, name: { type: 'string', maxLength: 100 } },
      required: ['id'],
    }
    expect(
      problemsOf(
        { type: 'array', items: user },
        list((id) => ({ id, name: `n${id}` }), 5_000),
      ),
    ).toEqual([])
  })
})

describe('schemas - reading', () => {
  test.each([
    [{ type: 'text' }, '/type', 'one or more of null, boolean, integer, number, string, array, object'],
    [{ require: ['a'] }, '/require', 'absent: this keyword is not supported'],
    [{ minimum: { $data: '/a' } }, '/minimum', 'a number'],
    [{ $ref: 'https://example.com/schema' }, '/$ref', 'a reference to a schema in this one, such as #/$defs/x'],
    [{ $ref: '#/$defs/absent' }, '/$ref', 'a reference to a schema in this one, such as #/$defs/x'],
    [{ enum: [{ minimum: 'x' }], $ref: '#/enum/0' }, '/$ref', 'a reference to a schema in this one, such as #/$defs/x'],
    [{ pattern: '^a' }, '/pattern', 'with maxLength of at most 256 next to it'],
    [{ pattern: '^a', maxLength: 257 }, '/pattern', 'with maxLength of at most 256 next to it'],
    [{ pattern: '(', maxLength: 9 }, '/pattern', 'a pattern that is supported: Invalid regular expression'],
    [{ pattern: '(a)\\1', maxLength: 9 }, '/pattern', 'a pattern that is supported: it has a reference to a group'],
    [
      { pattern: '(?=a)', maxLength: 9 },
      '/pattern',
      'a pattern that is supported: it has a lookahead, a lookbehind or flags',
    ],
    [{ pattern: 'a{99999}', maxLength: 9 }, '/pattern', 'a pattern that is supported: it has more than 1000 steps'],
    [
      { patternProperties: { '^a': {} } },
      '/patternProperties/^a',
      'with propertyNames.maxLength of at most 256 next to it',
    ],
    [{ properties: { a: { $id: 'x' } } }, '/properties/a/$id', 'absent: only the outermost schema may have it'],
    [
      { $schema: 'http://json-schema.org/draft-07/schema#' },
      '/$schema',
      'https://json-schema.org/draft/2020-12/schema',
    ],
    [{ unevaluatedProperties: false }, '/unevaluatedProperties', 'absent: this keyword is not supported'],
    [
      { $defs: { a: { allOf: [{ $ref: '#' }] } }, $ref: '#/$defs/a' },
      '',
      'without a circle of schemas that apply to the same value',
    ],
    [{ description: 'x'.repeat(32_768) }, '', 'at most 32768 bytes as JSON'],
    [[], '', 'a schema: an object, true or false'],
  ])('refuses %j', (given, pointer, allowed) => {
    const { problems } = new SchemaReader(given)
    expect(problems.map((problem) => problem.pointer)).toEqual([pointer])
    expect(problems[0]?.allowed).toContain(allowed)
  })

  test('lists all problems', () => {
    expect(
      new SchemaReader({ type: 1, items: { minimum: 'x' }, foo: 1 }).problems.map(({ pointer }) => pointer),
    ).toEqual(['/type', '/items/minimum', '/foo'])
  })

  test('never throws, whatever the schema', () => {
    assert(
      property(
        anything({
          maxDepth: 4,
          key: constantFrom('properties', 'items', '$ref', 'pattern', 'anyOf', '__proto__', 'a'),
        }),
        (given) => {
          void new SchemaReader(given).problems
        },
      ),
      { numRuns: 500, seed: 3 },
    )
  })
})
