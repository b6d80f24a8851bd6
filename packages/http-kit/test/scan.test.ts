import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { allSteps, elementTexts, isJson } from '../src/index.ts'

test('scan - the elements of an array are its source texts, with any contents', () => {
  expect(elementTexts('[ ]')).toEqual([])
  expect(elementTexts(' [1.0, "a,]\\"[" ,{"b":[1 ,2]},[[],[,]],null ] ')).toEqual([
    '1.0',
    '"a,]\\"["',
    '{"b":[1 ,2]}',
    '[[],[,]]',
    'null',
  ])
  fc.assert(
    fc.property(fc.array(fc.json()), fc.constantFrom('', ' ', '\n\t'), (elements, blank) => {
      expect(elementTexts(`[${elements.map((element) => `${blank}${element}${blank}`).join(',')}]`)).toEqual(
        elements.map((element) => element.trim()),
      )
    }),
    { numRuns: 500, seed: 5 },
  )
})

function isParsable(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('scan - a text is JSON if JSON.parse reads it, also where it is checked in pieces', () => {
  // A piece ends within the varied parts, at a comma of an array or of an object.
  const parts = ['0', '[1,2]', '{"a":1,"b":[]}', '"]},{["', '[[],{"c":"\\\\"}]', '{"d":{"e":[null,true]}}']
  const varied = fc.array(fc.constantFrom(...parts), { minLength: 20, maxLength: 40 })
  const edit = fc.tuple(fc.nat(400), fc.nat(2), fc.constantFrom('', ',', '[', ']', '{', '}', '"', ':', '0', ' '))
  const start = `{"x":{"y":[${'0,'.repeat(9_985)}`
  let valid = 0
  fc.assert(
    fc.property(varied, fc.array(edit, { maxLength: 2 }), (some, edits) => {
      let text = `${some.join(',')}]},"z":[${some.join(',')}]}`
      for (const [at, removed, added] of edits) text = text.slice(0, at) + added + text.slice(at + removed)
      const expected = isParsable(start + text)
      const pieces = [...isJson(start + text)].length
      expect(allSteps(isJson(start + text))).toBe(expected)
      if (expected) valid += pieces
    }),
    { numRuns: 200, seed: 5 },
  )
  expect(valid).toBeGreaterThan(40)
})
