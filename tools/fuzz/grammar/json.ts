import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { phrase, word } from './pieces.ts'

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

/** JSON strings, some with escapes where there need be none. */
export const jsonString: Arbitrary<string> = fc.oneof(
  phrase.map((text) => JSON.stringify(text)),
  word.map(
    (text) =>
      `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`,
  ),
)

const blank = fc.constantFrom('', '', '', ' ', '\n', '\r\n\t')

/** Source text of any JSON value: with repeated keys, numbers of any size and blanks anywhere. */
export const jsonText: Arbitrary<string> = fc.letrec<{ value: string; array: string; object: string; scalar: string }>(
  (tie) => ({
    value: fc.oneof({ maxDepth: 5, withCrossShrink: true }, tie('scalar'), tie('array'), tie('object')),
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
export type Fields = Readonly<Record<string, Arbitrary<string>>>

/**
 * Source text of an object with these members: nearly all of them there, some with another value, some repeated, and
 * some that nobody knows.
 */
export function objectText(fields: Fields): Arbitrary<string> {
  const members = Object.entries(fields).map(([name, value]) =>
    fc
      .tuple(
        fc.oneof({ weight: 12, arbitrary: value }, { weight: 1, arbitrary: jsonText }),
        fc.oneof(
          { weight: 20, arbitrary: fc.constant(1) },
          { weight: 2, arbitrary: fc.constant(0) },
          { weight: 1, arbitrary: fc.constant(2) },
        ),
      )
      .map(([text, count]) => Array.from({ length: count }, () => `${JSON.stringify(name)}:${text}`)),
  )
  const strange = fc.oneof(
    { weight: 6, arbitrary: fc.constant<readonly string[]>([]) },
    { weight: 1, arbitrary: fc.tuple(jsonString, jsonText).map(([key, value]) => [`${key}:${value}`]) },
  )
  return fc.tuple(...members, strange).map((parts) => `{${parts.flat().join(',')}}`)
}

/** Source text of a string that the arbitrary makes. */
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
