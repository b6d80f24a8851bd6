import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { METHODS, parseForTranslation, translateRequest, translateResult } from '../../src/wire/index.ts'

const NUMBERS = ['12345678901234567890', '1.0', '-0', '1e400', '0.10000000000000000001', '1E+2', '9007199254740993']

test('A2A versions - numbers: numbers that JavaScript prints differently are printed as they were written', () => {
  for (const number of NUMBERS) {
    for (const text of [number, `[${number}]`, `{"a":{"b":[1,${number}]}}`]) {
      expect(JSON.stringify(parseForTranslation(text))).toBe(text)
    }
  }
  expect(parseForTranslation('{"a":[0,-1,1.5,12,9007199254740991],"b":"1.0"}')).toEqual({
    a: [0, -1, 1.5, 12, 9_007_199_254_740_991],
    b: '1.0',
  })
})

test('A2A versions - numbers: any number is printed as it was written', () => {
  const number = fc.stringMatching(/^-?(?:0|[1-9]\d{0,20})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/)
  const place = fc.constantFrom(['', ''], ['[', ']'], ['[1,', ',2]'], ['{"a":"x","b":', '}'])
  fc.assert(
    fc.property(number, place, (digits, [before = '', after = '']) => {
      expect(JSON.stringify(parseForTranslation(`${before}${digits}${after}`))).toBe(`${before}${digits}${after}`)
      expect(JSON.stringify(parseForTranslation(`\n ${digits} `))).toBe(digits)
    }),
    { seed: 13, numRuns: 5000 },
  )
})

test('A2A versions - numbers: data and metadata reach the other version digit for digit', () => {
  for (const number of NUMBERS) {
    const part10 = `{"data":{"n":${number}},"metadata":{"m":[${number}]}}`
    const part03 = `{"kind":"data",${part10.slice(1)}`
    const text10 = `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[${part10}]}}`
    const text03 = `{"kind":"message","messageId":"m","role":"agent","parts":[${part03}]}`
    const result03 = translateResult(METHODS.send, '1.0', '0.3', parseForTranslation(text10))
    expect(JSON.stringify(result03)).toBe(text03)
    const result10 = translateResult(METHODS.send, '0.3', '1.0', parseForTranslation(text03))
    expect(JSON.stringify(result10)).toBe(text10)
  }
})

test('A2A versions - numbers: a large number as data is no object', () => {
  const text = '{"message":{"messageId":"m","parts":[{"data":12345678901234567890}]}}'
  const result = translateResult(METHODS.send, '1.0', '0.3', parseForTranslation(text))
  expect(JSON.stringify(result)).toContain(
    '{"kind":"data","data":{"value":12345678901234567890},"metadata":{"data_part_compat":true}}',
  )
})

test('A2A versions - numbers: a number in place of another type is refused like any other', () => {
  expect(withHistoryLength('10.0')).toEqual({ id: 't', historyLength: 10 })
  expect(() => withHistoryLength('1e400')).toThrow('params.historyLength is 1e400; it must be an integer')
  expect(() => translateRequest(METHODS.cancel, '0.3', '1.0', { id: 't', metadata: JSON.rawJSON('1.0') })).toThrow(
    'params.metadata is 1.0; it must be an object',
  )
})

test('A2A versions - numbers: a key named __proto__ is data', () => {
  const text = '{"__proto__":{"a":1.0}}'
  expect(JSON.stringify(parseForTranslation(text))).toBe(text)
  const metadata = parseForTranslation('{"data_part_compat":true,"__proto__":1}')
  const part = { kind: 'data', data: { value: [1] }, metadata }
  const message = { kind: 'message', messageId: 'm', role: 'user', parts: [part] }
  expect(JSON.stringify(translateRequest(METHODS.send, '0.3', '1.0', { message }))).toContain(
    '{"data":[1],"metadata":{"__proto__":1}}',
  )
})

function withHistoryLength(text: string): unknown {
  return translateRequest(METHODS.get, '0.3', '1.0', { id: 't', historyLength: parseForTranslation(text) })
}
