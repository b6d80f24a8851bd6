import { parseJsonText } from '@signalbox/broker-core/internal'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

/** Names that an earlier text can have in place of others, and characters whose escapes begin like them. */
const unit = fc.constantFrom(
  '\\',
  '\\u',
  '\\u00',
  '\\n',
  '"',
  '\n',
  'é',
  '日',
  'a',
  '',
  'u',
  '1',
  '__proto__',
  '\ud800',
  ':',
  ' ',
)
const name = fc.array(unit, { maxLength: 3 }).map((units) => units.join(''))

const value = fc.letrec<{ readonly value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, 1, '', '\\":', 'é\n'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value

/** Prints JSON in which each character of a text is an escape or not, as the numbers say. */
function printed(json: unknown, escapes: Iterator<boolean>): string {
  const text = (content: string): string => {
    const units = Array.from({ length: content.length }, (_, at) => content.slice(at, at + 1))
    return `"${units
      .map((one) =>
        escapes.next().value === true
          ? `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`
          : JSON.stringify(one).slice(1, -1),
      )
      .join('')}"`
  }
  if (typeof json === 'string') return text(json)
  if (typeof json !== 'object' || json === null) return JSON.stringify(json)
  if (Array.isArray(json)) return `[ ${json.map((one) => printed(one, escapes)).join(',')}]`
  return `{${Object.entries(json)
    .map(([key, one]) => `${text(key)} : ${printed(one, escapes)}`)
    .join(', ')}}`
}

test('json - keys are read as they are written, whatever names earlier texts had', () => {
  fc.assert(
    fc.property(fc.array(value, { maxLength: 4 }), fc.infiniteStream(fc.boolean()), (values, escapes) => {
      for (const one of values) {
        const text = printed(one, escapes)
        expect(parseJsonText(text)).toEqual(one)
        expect(Object.keys(Object(parseJsonText(text)))).toEqual(Object.keys(Object(one)))
      }
    }),
    { seed: 24, numRuns: 300 },
  )
})

test.each([
  ['a', String.raw`\\`, 'é', String.raw`\u00e9`],
  ['b', String.raw`\\u`, '日本', String.raw`\u65e5\u672c`],
  ['c', String.raw`\\\"`, '""', String.raw`\"\"`],
  ['d', String.raw`\\\\`, String.raw`\n`, String.raw`\\n`],
  ['e', String.raw`f\\`, 'f"', String.raw`f\"`],
])('json - after %s, the key %s of an earlier text does not replace %s', (first, earlier, name, source) => {
  parseJsonText(`{"${first}":1,"${earlier}":2}`)
  expect(Object.keys(Object(parseJsonText(`{"${first}":1,"${source}":2}`)))).toEqual([first, name])
})

test('json - of a key that appears twice the last value is kept, and the place of the first', () => {
  expect(Object.entries(Object(parseJsonText(String.raw`{"a":1,"\n":2,"b":3,"\u000a":4,"\u0061":5}`)))).toEqual([
    ['a', 5],
    ['\n', 4],
    ['b', 3],
  ])
})

test.each([
  String.raw`{"\n":1`,
  String.raw`{"\x":1}`,
  String.raw`{"a\":1}`,
  String.raw`{"\n"::1}`,
  String.raw`["\n":1]`,
  '{"\\',
])('json - the text %s with a fault in or after a key is refused', (text) => {
  expect(() => parseJsonText(text)).toThrow(SyntaxError)
})

test('json - a large text is read in linear time: more would end this test by its time-out', () => {
  for (const text of [
    `{"a":"${'\\n:'.repeat(1_000_000)}"}`,
    `{"\\n":[${'":\\\\",'.repeat(300_000)}0]}`,
    `{"\\n":0${' '.repeat(3_000_000)}}`,
  ]) {
    expect(Object.keys(Object(parseJsonText(text)))).toHaveLength(1)
  }
})
