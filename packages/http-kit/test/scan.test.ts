import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { elementTexts } from '../src/index.ts'

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
