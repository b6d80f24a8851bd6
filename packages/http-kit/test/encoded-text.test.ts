import { Buffer } from 'node:buffer'

import { anyCharacter } from '@signalbox/testkit/any-character'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { allSteps, encodedBody, encodedInSteps } from '../src/internal.ts'

const CALLER = { clientId: 'sender' }

test('encoded text - a long body is encoded a piece at a time, and no piece ends within a character', async () => {
  for (const text of [
    '🙂'.repeat(300_000),
    `x${'🙂'.repeat(300_000)}`,
    'é'.repeat(262_145),
    `${'x'.repeat(262_143)}\ud83d`,
  ]) {
    const want = Buffer.from(text)
    const bytes = await encodedBody({ body: text }, CALLER)
    expect(want.equals(bytes)).toBe(true)
    const steps = encodedInSteps(text)
    let pieces = 0
    while (steps.next().done !== true) pieces++
    expect(pieces).toBe(Math.ceil(text.length / 262_144))
  }
  expect(encodedBody({ body: 'short' }, CALLER)).toEqual(new Uint8Array(Buffer.from('short')))
})

test('encoded text - any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      expect(Buffer.from(text).equals(allSteps(encodedInSteps(text)))).toBe(true)
    }),
    { seed: 31 },
  )
})
