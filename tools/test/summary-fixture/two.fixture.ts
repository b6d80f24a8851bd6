import { expect, test } from 'vitest'

const second = process.env['SECOND_TEST']
let runs = 0

test('F-1 - the first test passes', () => {
  expect(1).toBe(1)
})

test.skipIf(second === 'skipped')('F-2 - the second test ends as the environment says', () => {
  expect(second === 'passed later' && ++runs === 2 ? 'passed' : second).toBe('passed')
})
