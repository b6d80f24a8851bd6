import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { METHODS, translateRequest, translateResult } from '../../src/wire/index.ts'
import { params, results } from './arbitraries.ts'

const RUNS = { seed: 5, numRuns: 1000 }
const OPERATIONS = [
  'send',
  'stream',
  'get',
  'cancel',
  'resubscribe',
  'push-create',
  'push-get',
  'push-list',
  'push-delete',
] as const

for (const operation of OPERATIONS) {
  const method = METHODS[operation]

  test(`A2A versions - requests of ${operation} that 0.3 can hold survive the way there and back`, () => {
    fc.assert(
      fc.property(params[operation], (params10) => {
        const params03 = translateRequest(method, '1.0', '0.3', params10)
        expect(translateRequest(method, '0.3', '1.0', params03)).toEqual(params10)
      }),
      RUNS,
    )
  })

  test(`A2A versions - results of ${operation} that 0.3 can hold survive the way there and back`, () => {
    fc.assert(
      fc.property(results[operation], (result10) => {
        const result03 = translateResult(method, '1.0', '0.3', result10)
        expect(translateResult(method, '0.3', '1.0', result03)).toEqual(result10)
      }),
      RUNS,
    )
  })
}
