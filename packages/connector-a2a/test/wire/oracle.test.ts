import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import { METHODS, translateRequest, translateResult } from '../../src/wire/index.ts'
import { params, results } from './arbitraries.ts'
import type { SdkOperation } from './sdk.ts'
import { sdkRequestTo03, sdkRequestTo10, sdkResultTo03, sdkResultTo10 } from './sdk.ts'

const OPERATIONS: readonly SdkOperation[] = [
  'send',
  'stream',
  'get',
  'cancel',
  'resubscribe',
  'push-create',
  'push-get',
  'push-list',
  'push-delete',
]
const RUNS = { seed: 11, numRuns: cases(150) }
const ROUND_TRIPS = { seed: 5, numRuns: cases(1000) }

for (const operation of OPERATIONS) {
  const method = METHODS[operation]

  test(`A2A versions - requests of ${operation} are translated as the official SDK translates them`, async () => {
    await fc.assert(
      fc.asyncProperty(params[operation], async (params10) => {
        const params03 = await sdkRequestTo03(operation, params10)
        expect(comparable(translateRequest(method, '1.0', '0.3', params10))).toEqual(comparable(params03))
        const back = translateRequest(method, '0.3', '1.0', asObject(params03))
        expect(comparable(back)).toEqual(comparable(await sdkRequestTo10(operation, params03)))
      }),
      RUNS,
    )
  })

  test(`A2A versions - results of ${operation} are translated as the official SDK translates them`, async () => {
    await fc.assert(
      fc.asyncProperty(results[operation], async (result10) => {
        const result03 = await sdkResultTo03(operation, result10)
        expect(comparable(translateResult(method, '1.0', '0.3', result10))).toEqual(comparable(result03))
        const back = translateResult(method, '0.3', '1.0', result03)
        expect(comparable(back)).toEqual(comparable(await sdkResultTo10(operation, result03)))
      }),
      RUNS,
    )
  })

  test(`A2A versions - requests of ${operation} that 0.3 can hold survive the way there and back`, () => {
    fc.assert(
      fc.property(params[operation], (params10) => {
        const params03 = translateRequest(method, '1.0', '0.3', params10)
        expect(translateRequest(method, '0.3', '1.0', params03)).toEqual(params10)
      }),
      ROUND_TRIPS,
    )
  })

  test(`A2A versions - results of ${operation} that 0.3 can hold survive the way there and back`, () => {
    fc.assert(
      fc.property(results[operation], (result10) => {
        const result03 = translateResult(method, '1.0', '0.3', result10)
        expect(translateResult(method, '0.3', '1.0', result03)).toEqual(result10)
      }),
      ROUND_TRIPS,
    )
  })
}

/** Members that the SDK prints although they have their default, or omits because they have it. */
const DEFAULTS: ReadonlyMap<string, string> = new Map([
  ['append', 'false'],
  ['lastChunk', 'false'],
  ['returnImmediately', 'false'],
  ['acceptedOutputModes', '[]'],
  ['state', '"TASK_STATE_UNSPECIFIED"'],
])

/** Returns a value as JSON, without members that have their default. */
function comparable(value: unknown): unknown {
  if (value === undefined) return undefined
  return JSON.parse(JSON.stringify(value), (name, member: unknown) =>
    DEFAULTS.get(name) === JSON.stringify(member) ? undefined : member,
  )
}

function asObject(value: unknown): { readonly [name: string]: unknown } {
  if (typeof value !== 'object' || value === null) throw new Error('not an object')
  return Object.fromEntries(Object.entries(value))
}
