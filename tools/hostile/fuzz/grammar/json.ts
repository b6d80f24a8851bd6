import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { grownJson, phrase, weighted, word } from './pieces.ts'

const number = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '0',
    '-0',
    '-1',
    '1e3',
    '1E+2',
    '1.0',
    '1e400',
    '-1e-400',
    '9007199254740993',
    '123456789012345678901234567890',
  ),
)

/**
 * JSON strings, some with needless escapes. Not those of one character, because V8 misreads such a key once it has
 * parsed an object with a backslash for a key in the same place: after `{"x":1,"\\":1}` the second key of
 * `{"x":1,"\u0079":1}` is a backslash too (Node 24.21; Node 20 is right).
 */
const jsonString: Arbitrary<string> = fc.oneof(
  phrase.map((text) => JSON.stringify(text)),
  word.map((text) => (text.length === 1 ? JSON.stringify(text) : `"${escaped(text)}"`)),
)

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join(
    '',
  )
}

const blank = fc.constantFrom('', '', '', ' ', '\n', '\r\n\t')

/** Source text of any JSON value: with repeated keys, numbers of any size and blanks anywhere. */
export const jsonText: Arbitrary<string> = fc.letrec<{ value: string; array: string; object: string; scalar: string }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      { weight: 10, arbitrary: tie('scalar') },
      { weight: 10, arbitrary: tie('array') },
      { weight: 10, arbitrary: tie('object') },
      { weight: 1, arbitrary: grownJson },
    ),
    scalar: fc.oneof(jsonString, number, fc.constantFrom('null', 'true', 'false')),
    array: fc
      .tuple(fc.array(tie('value'), { maxLength: 5 }), blank)
      .map(([items, space]) => `[${space}${items.join(`${space},`)}${space}]`),
    object: fc
      .tuple(fc.array(fc.tuple(jsonString, tie('value')), { maxLength: 5 }), blank)
      .map(
        ([members, space]) =>
          `{${space}${members.map(([key, value]) => `${key}${space}:${space}${value}`).join(',')}${space}}`,
      ),
  }),
).value

/** Members of an object by their names, as source text. */
type Fields = Readonly<Record<string, Arbitrary<string>>>

/** The faults of a member of an object. */
type Fault = 'missing' | 'twice' | 'renamed' | 'other value' | 'stranger'

const fault: Arbitrary<Fault | undefined> = weighted(
  [10, fc.constant(undefined)],
  [1, fc.constantFrom('missing', 'other value', 'twice', 'renamed', 'stranger')],
)

/**
 * Source text of an object with these members. Most objects are correct and omit some optional members. The others have
 * one fault.
 * @param required The members that only a fault removes. @default all of them
 */
export function objectText(fields: Fields, required: readonly string[] = Object.keys(fields)): Arbitrary<string> {
  const names = Object.keys(fields)
  const members = names.map((name) => fc.tuple(fields[name] ?? jsonText, fc.boolean()))
  return fc
    .tuple(fc.tuple(...members), fault, fc.nat(), jsonString, jsonText)
    .map(([values, wrong, which, key, value]) => {
      const texts = values.flatMap(([text, present], i) => {
        const name = names[i] ?? ''
        if (!present && !required.includes(name)) return []
        if (wrong === undefined || i !== which % names.length) return [`${JSON.stringify(name)}:${text}`]
        return faulty(wrong, JSON.stringify(name), text, key, value)
      })
      return `{${(wrong === 'stranger' ? [...texts, `${key}:${value}`] : texts).join(',')}}`
    })
}

function faulty(wrong: Fault, name: string, text: string, key: string, value: string): readonly string[] {
  switch (wrong) {
    case 'missing':
      return []
    case 'twice':
      return [`${name}:${text}`, `${name}:${value}`]
    case 'renamed':
      return [`${key}:${text}`]
    case 'other value':
      return [`${name}:${value}`]
    default:
      return [`${name}:${text}`]
  }
}

/** Source text of a string that the arbitrary produces. */
export function quoted(text: Arbitrary<string>): Arbitrary<string> {
  return text.map((value) => JSON.stringify(value))
}

export function oneOfTexts(...texts: readonly string[]): Arbitrary<string> {
  return fc.constantFrom(...texts)
}

/** Source text of a list. */
export function listText(item: Arbitrary<string>, maxLength = 4): Arbitrary<string> {
  return fc.array(item, { maxLength }).map((items) => `[${items.join(',')}]`)
}

/** Units whose repetition makes JSON deep, wide or long. */
export const JSON_UNITS = [
  '[',
  '{"a":',
  '[[],',
  '"a":1,',
  '{"a":1},',
  '1,',
  ' ',
  '\\\\',
  '\\"',
  '"',
  '\\u0000',
  '0',
  'é',
  '[]',
  '}',
  ']',
]
