import { expect, test } from 'vitest'

import { hopsOf, hopsProblem } from '../src/index.ts'

test.each<[header: string | undefined, hops: number]>([
  [undefined, 0],
  ['0', 0],
  [' 3 ', 3],
  ['2, 7', 7],
  ['-1', Infinity],
  ['three', Infinity],
  ['1234567', Infinity],
])('hops - the header %j counts as %d brokers', (header, hops) => {
  expect(hopsOf(header === undefined ? {} : { 'x-broker-hops': header })).toBe(hops)
})

test('hops - eight brokers are allowed, and an unknown number is not', () => {
  expect(hopsProblem(8)).toBeUndefined()
  expect(hopsProblem(9)).toContain('9 brokers')
  expect(hopsProblem(Infinity)).toContain('an unknown number of brokers')
})
