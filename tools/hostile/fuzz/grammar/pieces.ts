import { anyCharacter } from '@signalbox/testkit/any-character'
import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

/** A text in its stored form: parts, and repeated parts. */
export type Pieces = readonly (string | readonly [part: string, times: number])[]

/** The longest text made of pieces, in UTF-16 units: a linear parser reads it within an input's time. */
const MAX_TEXT = 262_144

/** The largest head of a request that Node accepts, in bytes. */
export const MAX_HEAD = 16_384

export function textOf(pieces: Pieces, max = MAX_TEXT): string {
  let text = ''
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece
    else {
      const [part, times] = piece
      const room = Math.ceil((max - text.length) / Math.max(1, part.length))
      text += part.repeat(Math.max(0, Math.min(times, room)))
    }
  }
  return grown(text, max).slice(0, max)
}

/**
 * The JSON structures that can be very large, by the name of their placeholder: complete, so that parsers reach the
 * end.
 */
const GROWTHS: Readonly<Record<string, (times: number) => string>> = {
  arrays: (times) => '['.repeat(times) + ']'.repeat(times),
  objects: (times) => `${'{"a":'.repeat(times)}1${'}'.repeat(times)}`,
  elements: (times) => `[${'[],'.repeat(times)}0]`,
  members: (times) => `{${Array.from({ length: times }, (_, i) => `"k${i}":0,`).join('')}"k":0}`,
  digits: (times) => `1${'0'.repeat(times)}`,
  characters: (times) => `"${'a\\n'.repeat(times)}"`,
}

/** Placeholders past this size stay, so that a text stays near its limit. */
const MAX_GROWN = 3

/** Fills in placeholders such as `{{arrays:5000}}`: stored files hold the number instead of the long text. */
function grown(text: string, max: number): string {
  if (!text.includes('{{')) return text
  let grownTexts = 0
  return text.replaceAll(/\{\{(\w+):(\d+)\}\}/g, (placeholder, name: string, times: string) => {
    const grow = GROWTHS[name]
    if (grow === undefined || ++grownTexts > MAX_GROWN) return placeholder
    return grow(Math.min(Number(times), Math.ceil(max / 3)))
  })
}

/** JSON text that is deep, wide or long, by its placeholder. */
export const grownJson: Arbitrary<string> = fc
  .tuple(fc.constantFrom(...Object.keys(GROWTHS)), fc.constantFrom(20, 126, 130, 1_000, 5_000, 20_000, 60_000))
  .map(([name, times]) => `{{${name}:${times}}}`)

type Choice = readonly [weight: number, arbitrary: Arbitrary<unknown>]

/** Takes each arbitrary as often as its weight says. */
export function weighted<const Choices extends readonly Choice[]>(
  ...choices: Choices
): Arbitrary<Choices[number][1] extends Arbitrary<infer T> ? T : never> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary }))) as never
}

/** Text that is known to cause faults in parsers. */
const NASTY = [
  '',
  ' ',
  '\t',
  '\r\n',
  '\n\n',
  '\0',
  '\u007f',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\ufffd',
  '\uffff',
  '\ud800',
  '\udfff\ud800',
  '\u202e',
  '😀',
  'é',
  'ﬃ',
  '%00',
  '%',
  '%zz',
  '\\',
  '\\u0000',
  '"',
  "'",
  '`',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  ':',
  ',',
  ';',
  '=',
  '&',
  '#',
  '*',
  '**',
  '>',
  '?',
  '.',
  '..',
  '../../etc/passwd',
  '/',
  '-',
  '-0',
  '+1',
  '0x10',
  '1e400',
  '9007199254740993',
  'NaN',
  'Infinity',
  'null',
  'true',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'length',
  '_AGENTS_.',
  '_AGENTS_.discovery',
]

/** A short text: a word, a hostile text, or any characters. */
export const word: Arbitrary<string> = weighted(
  [3, fc.constantFrom('a', 'b', 'orders', 'orders.eu', 'x-1', 'agent-one', '1', '0')],
  [3, fc.constantFrom(...NASTY)],
  [1, fc.string({ unit: anyCharacter, maxLength: 12 })],
  [1, fc.string({ unit: 'grapheme', maxLength: 40 })],
)

export const phrase: Arbitrary<string> = fc.array(word, { maxLength: 6 }).map((words) => words.join(''))

/** Text for any place that accepts text: most of it is harmless. */
export const anyText: Arbitrary<string> = weighted(
  [6, phrase.map((text) => text.toWellFormed())],
  [2, fc.constantFrom('some text', '{"a":1}', '[1,2]')],
  [1, phrase],
)

/** A number of repetitions: mostly small, sometimes large enough to show growth faster than linear. */
const times = weighted(
  [6, fc.integer({ min: 0, max: 40 })],
  [3, fc.integer({ min: 100, max: 3_000 })],
  [1, fc.constantFrom(130, 10_000, 65_536, 200_000, 1_000_000)],
)

const place = fc.double({ min: 0, max: 1, noNaN: true })

/** Replaces a part of a text. */
const edit = fc.record({ at: place, remove: fc.integer({ min: 0, max: 8 }), insert: word })

const untouched = fc.constant(undefined)
const edits = fc.array(edit, { minLength: 1, maxLength: 3, size: 'small' })

/**
 * Texts of a grammar: most of them unchanged, so that inputs pass the parser; the others edited in some places, or with
 * a repeated part.
 * @param units Parts that are worth repeating in this grammar
 */
export function almost(grammar: Arbitrary<string>, ...units: readonly string[]): Arbitrary<Pieces> {
  const given = units.length === 0 ? word : fc.constantFrom(...units)
  const pump = fc.record({ at: place, length: fc.integer({ min: 1, max: 24 }), own: fc.boolean(), unit: given, times })
  return fc
    .tuple(grammar, weighted([6, untouched], [1, edits]), weighted([4, untouched], [1, pump]))
    .map(([text, changes, pumped]) => {
      const edited = (changes ?? []).reduce(replaced, text)
      if (pumped === undefined) return [edited]
      const at = Math.floor(pumped.at * edited.length)
      const unit = pumped.own ? edited.slice(at, at + pumped.length) : pumped.unit
      return [edited.slice(0, at), [unit, pumped.times], edited.slice(at)]
    })
}

function replaced(text: string, change: { at: number; remove: number; insert: string }): string {
  const at = Math.floor(change.at * text.length)
  return text.slice(0, at) + change.insert + text.slice(at + change.remove)
}
