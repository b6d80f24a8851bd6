import { JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import type { WireVersion } from '../../src/wire/index.ts'
import {
  calledMethod,
  METHODS,
  parseForTranslation,
  StreamTranslation,
  translateError,
  translateRequest,
  translateResult,
  UntranslatableError,
} from '../../src/wire/index.ts'
import { params, results } from './arbitraries.ts'

const RUNS = { seed: 3, numRuns: cases(800) }

/** Every name that the translation reads, so that garbage is not refused at once. */
const NAMES =
  `kind message task statusUpdate artifactUpdate status state timestamp artifact artifacts history parts text

raw url data file bytes uri name mimeType metadata data_part_compat extensions referenceTaskIds messageId contextId taskId

id role append lastChunk configuration blocking historyLength acceptedOutputModes configs pushNotificationConfig

taskPushNotificationConfig pushNotificationConfigId authentication scheme schemes credentials token tenant value
__proto__ constructor toString length`.split(/\s/)

const WORDS = ['', 'task', 'message', 'status-update', 'artifact-update', 'text', 'file', 'data', 'user', 'ROLE_USER']

const { garbage } = fc.letrec((tie) => ({
  garbage: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom<unknown>(null, true, 0, -0, 1.5, 1e300, JSON.rawJSON('1e400'), 'x', [], {}, ...WORDS),
    fc.array(tie('garbage'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('garbage'), { maxKeys: 8, noNullPrototype: true }),
  ),
}))

/** A valid value with one member, at any depth, replaced by garbage. */
function damaged(values: { readonly [operation: string]: fc.Arbitrary<unknown> }): fc.Arbitrary<unknown> {
  return fc
    .tuple(fc.oneof(...Object.values(values)), fc.array(fc.nat(20), { maxLength: 6 }), garbage)
    .map(([value, path, replacement]) => replaced(value, path, replacement))
}

function replaced(value: unknown, [index, ...path]: readonly number[], replacement: unknown): unknown {
  if (index === undefined || typeof value !== 'object' || value === null) return replacement
  const entries = Object.entries(value)
  const target = entries[index % Math.max(entries.length, 1)]
  if (target === undefined) return replacement
  const changed = replaced(target[1], path, replacement)
  if (Array.isArray(value)) return entries.map((entry) => (entry === target ? changed : entry[1]))
  return Object.fromEntries(entries.map((entry) => (entry === target ? [target[0], changed] : entry)))
}

const WAYS: readonly (readonly [WireVersion, WireVersion])[] = [
  ['1.0', '0.3'],
  ['0.3', '1.0'],
]

for (const [from, to] of WAYS) {
  test(`A2A versions - garbage: params from ${from} are translated, or are -32602 with the member`, () => {
    fc.assert(
      fc.property(fc.oneof(garbage, damaged(params), damaged(translated(params))), (value) => {
        const given = isJsonObject(value) ? value : { message: value }
        for (const method of Object.values(METHODS)) {
          calledMethod(method, from, to, given)
          expect(surprise(() => translateRequest(method, from, to, given), isInvalidParams)).toBeUndefined()
        }
      }),
      RUNS,
    )
  })

  test(`A2A versions - garbage: results from ${from} are translated, or are refused with the member`, () => {
    fc.assert(
      fc.property(fc.oneof(garbage, damaged(results), damaged(translated(results))), (result) => {
        for (const method of Object.values(METHODS)) {
          expect(surprise(() => translateResult(method, from, to, result), isUntranslatable)).toBeUndefined()
        }
        const stream = new StreamTranslation(from, to)
        expect(surprise(() => stream.next(result), isUntranslatable)).toBeUndefined()
        expect(surprise(() => stream.next(result), isUntranslatable)).toBeUndefined()
        expect(surprise(() => stream.end(), isUntranslatable)).toBeUndefined()
        const error = isJsonObject(result) ? result : { data: result }
        expect(surprise(() => translateError(from, to, error), isUntranslatable)).toBeUndefined()
      }),
      RUNS,
    )
  })
}

test('A2A versions - garbage: data nested to the limit of requests is copied, not walked', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const data: unknown = JSON.parse(deep)
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ data }], metadata: { data } }
  const translatedMessage = translateRequest(METHODS.send, '1.0', '0.3', { message })
  expect(Reflect.get(Object(translatedMessage?.['message']), 'metadata')).toBe(message.metadata)
})

test('A2A versions - garbage: text that is not JSON is a syntax error', () => {
  for (const text of ['', '{', '1.0.0', '[1.5', 'undefined']) {
    expect(() => parseForTranslation(text)).toThrow(SyntaxError)
  }
})

/** The same values as 0.3 writes them. */
function translated(values: typeof params | typeof results): { readonly [operation: string]: fc.Arbitrary<unknown> } {
  const { send, stream, get } = values
  const isParams = values === params
  const to03 =
    (operation: 'send' | 'stream' | 'get') =>
    (value: { readonly [name: string]: unknown }): unknown =>
      isParams
        ? translateRequest(METHODS[operation], '1.0', '0.3', value)
        : translateResult(METHODS[operation], '1.0', '0.3', value)
  return { send: send.map(to03('send')), stream: stream.map(to03('stream')), get: get.map(to03('get')) }
}

/** Returns an error that the documentation does not name. */
function surprise(run: () => unknown, isDocumented: (error: unknown) => boolean): unknown {
  try {
    JSON.stringify(run())
    return undefined
  } catch (error) {
    return isDocumented(error) ? undefined : error
  }
}

function isInvalidParams(error: unknown): boolean {
  if (!(error instanceof JsonRpcError)) return false
  return error.code === -32_004 || (error.code === -32_602 && error.message.startsWith('invalid params: params'))
}

function isUntranslatable(error: unknown): boolean {
  if (error instanceof UntranslatableError) return error.message.startsWith('result')
  return error instanceof JsonRpcError && error.message === 'the task has no push notification configuration'
}

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
    { seed: 13, numRuns: cases(5000) },
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
