import { Buffer } from 'node:buffer'

import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { allSteps, checkJson, onOneLine, outlineOf, parseJson, trimmedJson } from '../src/internal.ts'

const ANY_KEYS = { maxKeys: 0 }

/** Returns the members as texts, or the problem. */
function checked(text: string | Uint8Array): Readonly<Record<string, string>> | string {
  const json = allSteps(checkJson(Buffer.from(text), ANY_KEYS))
  if ('problem' in json) return json.problem
  return Object.fromEntries([...json.members].map(([key, bytes]) => [key, Buffer.from(bytes).toString()]))
}

function pieces(text: string): number {
  return [...checkJson(Buffer.from(text), ANY_KEYS)].length
}

test('check - the members of an object are its source texts, the last one of a repeated key', () => {
  expect(checked(' {"a" : 1.0 , "b":[ {"a":2}, "}" ],"c\\u0061":"\\"","a":-0e+1 } \n')).toEqual({
    a: '-0e+1',
    b: '[ {"a":2}, "}" ]',
    ca: '"\\""',
  })
  for (const text of ['[{"a":1}]', '"a"', 'null', '-1.5e3', '{}']) expect(checked(text)).toEqual({})
})

test('check - a text is JSON exactly if JSON.parse reads it', () => {
  const units = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '"a"',
    '"\\u00e9"',
    '"\\q"',
    '"\\u12g4"',
    '0',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '2E-7',
    'true',
    'nul',
    ' ',
    '\t',
    '\u0001',
    '\u00a0',
    'é',
    '\ufeff',
  ]
  const edit = fc.tuple(fc.nat(60), fc.nat(2), fc.constantFrom('', ...units))
  const broken = fc.tuple(fc.json({ maxDepth: 4 }), fc.array(edit, { maxLength: 3 })).map(([json, edits]) => {
    let text = json
    for (const [at, removed, added] of edits) text = text.slice(0, at) + added + text.slice(at + removed)
    return text
  })
  const soup = fc.array(fc.constantFrom(...units), { maxLength: 12 }).map((some) => some.join(''))
  let valid = 0
  fc.assert(
    fc.property(fc.oneof(broken, soup), (text) => {
      const expected = 'value' in parseJson(text, { ...ANY_KEYS, uniqueKeys: false })
      expect(typeof checked(text) === 'object').toBe(expected)
      if (expected) valid++
    }),
    { numRuns: 5_000, seed: 5 },
  )
  expect(valid).toBeGreaterThan(500)
})

test('check - the members that are found are those of the parsed value', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(undefined, 2), (value, blanks) => {
      const text = JSON.stringify(value, null, blanks)
      const members = checked(text)
      if (typeof members === 'string') throw new Error(members)
      const parsed = Object.entries(members).map(([key, source]): [string, unknown] => [key, JSON.parse(source)])
      expect(Object.fromEntries(parsed)).toEqual(JSON.parse(text))
    }),
    { numRuns: 500, seed: 5 },
  )
})

test('check - a long text is read a piece at a time: a long string, many values, blanks', () => {
  const long = 2_000_000
  const texts = [
    `{"a":"${'x'.repeat(long)}"}`,
    `["${'\\n'.repeat(long / 2)}"]`,
    `[${'0,'.repeat(400_000)}0]`,
    `[${' '.repeat(long)}]`,
  ]
  for (const text of texts) {
    expect(typeof checked(text)).toBe('object')
    expect(pieces(text)).toBe(Math.floor(text.length / 262_144))
  }
  const cut = `["${'x'.repeat(262_140)}\\u00e9${'x'.repeat(10)}"]`
  expect([typeof checked(cut), checked(cut.replace('e9', 'g9'))]).toEqual(['object', 'not valid JSON'])
})

test('check - limits and bytes that are not UTF-8 are named', () => {
  expect(checked(Buffer.from([0x22, 0xff, 0x22]))).toBe('not valid UTF-8')
  expect(checked('['.repeat(129))).toBe('nested deeper than 128 levels')
  expect(checked(`[${'"",'.repeat(200_001)}0]`)).toContain('200000 strings')
  expect(checked(`[${'0,'.repeat(1_000_001)}0]`)).toContain('1000000 elements')
  expect(checked(`[${'1'.repeat(1_001)}]`)).toContain('1000 characters')
  expect(allSteps(checkJson(Buffer.from('{"a":1,"b":2}'), { maxKeys: 1 }))).toMatchObject({ exceeded: 'keys' })
})

test('outline - short members are values, long strings and arrays are empty', () => {
  const long = 'x'.repeat(70_000)
  const value = { a: { state: 'done', text: long, list: [long] }, b: long, n: 1 }
  const json = allSteps(checkJson(Buffer.from(JSON.stringify({ ...value, o: { p: { q: { r: { s: long } } } } }))))
  if ('problem' in json) throw new Error(json.problem)
  expect(allSteps(outlineOf(json.members))).toEqual({
    a: { state: 'done', text: '', list: [] },
    b: '',
    n: 1,
    o: { p: { q: { r: {} } } },
  })
})

test('one line - line ends between tokens become blanks, and the blanks around a text go', () => {
  const text = Buffer.from('\r\n {"a":\n1}\t')
  expect(Buffer.from(allSteps(onOneLine(text))).toString()).toBe('   {"a": 1}\t')
  expect(Buffer.from(trimmedJson(text)).toString()).toBe('{"a":\n1}')
  expect([...onOneLine(Buffer.alloc(10_000_000, '\n'))].length).toBeGreaterThan(15)
})
