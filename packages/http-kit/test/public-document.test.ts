import { expect, test } from 'vitest'

import { forEveryOrigin, withVary } from '../src/index.ts'

test('public document - a name is added to the Vary of the host, whatever its case', () => {
  expect(withVary(undefined, 'A2A-Version')).toEqual({ Vary: 'A2A-Version' })
  expect(withVary({ vary: 'Origin', ETag: '"1"' }, 'A2A-Version')).toEqual({ ETag: '"1"', Vary: 'Origin, A2A-Version' })
  expect(withVary({ Vary: ['Origin', 'Accept'] }, 'A2A-Version')).toEqual({ Vary: 'Origin, Accept, A2A-Version' })
  expect(withVary({ Vary: undefined }, 'A2A-Version')).toEqual({ Vary: 'A2A-Version' })
})

test('public document - the CORS headers of the host give way to one for every origin', () => {
  expect(forEveryOrigin()).toEqual({ 'Access-Control-Allow-Origin': '*' })
  expect(
    forEveryOrigin({ 'access-control-allow-origin': 'https://a.example', 'Access-Control-Allow-Credentials': 'true' }),
  ).toEqual({ 'Access-Control-Allow-Origin': '*' })
})
