import { array, assert, asyncProperty, string } from 'fast-check'
import { expect, test } from 'vitest'

import { sortInTurns } from '../src/sort-in-turns.ts'

test('sort in turns - few names', async () => {
  await assert(
    asyncProperty(array(string()), async (names) => {
      expect(await sortInTurns(names)).toEqual(names.toSorted())
    }),
    { seed: 29 },
  )
})

test('sort in turns - many names, in any order', async () => {
  for (const count of [4_097, 8_192, 20_000]) {
    const names = Array.from({ length: count }, (_, i) => `channel.${(i * 7_919) % count}`)
    expect(await sortInTurns(names)).toEqual(names.toSorted())
  }
})
