import { CloudEvent } from 'cloudevents'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { hasPlainFormats } from '../src/event/attributes.ts'

const REQUIRED = { specversion: '1.0', id: '1', source: '/test', type: 't' } as const

function isValid(attributes: Readonly<Record<string, string>>): boolean {
  try {
    return new CloudEvent({ ...REQUIRED, ...attributes }, true).id === '1'
  } catch {
    return false
  }
}

function isPlain(attributes: Readonly<Record<string, string>>): boolean {
  return hasPlainFormats(new Map(Object.entries({ ...REQUIRED, ...attributes })))
}

const uri = fc
  .tuple(
    fc.constantFrom('', '/', '//', 'http:', 'https://', 'urn:', 'a1+.-:', '1a:', ':', 'mailto:', 'x:/', 'x:///'),
    fc.string({
      unit: fc.constantFrom('a', 'b', '1', '_', '~', '.', '-', ':', '/', '%', '#', '?', '@', '[', ' ', '"', 'ü'),
      maxLength: 12,
    }),
  )
  .map(([start, rest]) => start + rest)
const digits = (most: number): fc.Arbitrary<string> => fc.nat(most).map((n) => `${n}`.padStart(2, '0'))
const time = fc
  .tuple(
    fc.constantFrom('2024', '2023', '0000', '9999', '24'),
    digits(13),
    digits(32),
    digits(25),
    digits(60),
    digits(61),
    fc.constantFrom('', '.5', '.123456789', '.'),
    fc.constantFrom('Z', '+02:00', '-23:59', '+24:00', '+0200', ''),
  )
  .map(
    ([year, month, day, hour, minute, second, fraction, zone]) =>
      `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone}`,
  )

test('attributes - a value that passes the quick check of formats passes the check of the official SDK', () => {
  for (const attribute of ['source', 'dataschema'] as const) {
    fc.assert(
      fc.property(uri, (text) => !isPlain({ [attribute]: text }) || isValid({ [attribute]: text })),
      { numRuns: 3000, seed: 7 },
    )
  }
  fc.assert(
    fc.property(time, (text) => !isPlain({ time: text }) || isValid({ time: text })),
    { numRuns: 3000, seed: 7 },
  )
  for (const attribute of ['subject', 'datacontenttype']) expect(isPlain({ [attribute]: '' })).toBe(false)
})

test('attributes - usual values take the quick check', () => {
  for (const attributes of [
    { source: '/sensors/7', time: '2026-01-31T09:30:00Z' },
    { source: 'https://shop.example:8443/orders/', time: '2024-12-30T23:59:59.123456789+02:00' },
    { source: 'urn:example:sensor:7', dataschema: 'https://example.com/schemas/v1.json' },
  ]) {
    expect(isPlain(attributes), JSON.stringify(attributes)).toBe(true)
  }
})
