import { Buffer } from 'node:buffer'

import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { JsonRpcError, parseJsonRpc } from '../src/index.ts'
import { elementTexts, memberText, parseJson } from '../src/internal.ts'

test('scan - the elements of an array are its source texts, with any contents', () => {
  expect(elementTexts('[ ]')).toEqual([])
  expect(elementTexts(' [1.0, "a,]\\"[" ,{"b":[1 ,2]},[[],[,]],null ] ')).toEqual([
    '1.0',
    '"a,]\\"["',
    '{"b":[1 ,2]}',
    '[[],[,]]',
    'null',
  ])
  fc.assert(
    fc.property(fc.array(fc.json()), fc.constantFrom('', ' ', '\n\t'), (elements, blank) => {
      expect(elementTexts(`[${elements.map((element) => `${blank}${element}${blank}`).join(',')}]`)).toEqual(
        elements.map((element) => element.trim()),
      )
    }),
    { numRuns: 500, seed: 5 },
  )
})

/** Members with different keys. */
function members(count: number): string {
  return Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')
}

function call(args: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":${args}}}`
}

const FREE_FORM = ['params', 'arguments', 'params']

/** Reads a call whose parameters for an agent are free; resolves with the error, if any. */
function problemOf(args: string): string | undefined {
  try {
    parseJsonRpc(Buffer.from(call(args)), { uniqueKeys: true, freeForm: FREE_FORM })
    return undefined
  } catch (error) {
    if (error instanceof JsonRpcError) return `${error.code} ${error.message}`
    throw error
  }
}

describe('limits - values are bounded before they are built', () => {
  test('a request may have 1,000 keys, and an agent’s parameters 50,000 more', () => {
    // The envelope and the call have 6 keys.
    expect(problemOf(`{"tags":{${members(993)}}}`)).toBeUndefined()
    expect(problemOf(`{"tags":{${members(994)}}}`)).toBe(
      '-32600 invalid request: the body is JSON of more than 1000 keys or 10000 elements outside params.arguments.params',
    )
    expect(problemOf(`{"params":{${members(50_000)}}}`)).toBeUndefined()
    expect(problemOf(`{"params":{"x":[{${members(50_000)}}]},"tags":{${members(900)}}}`)).toBeUndefined()
  })

  test.each([
    ['behind the parameters', `{"params":{"a":1},"tags":{${members(2_000)}}}`],
    ['before the parameters', `{"tags":{${members(2_000)}},"params":{"a":1}}`],
    ['in a member of the same name elsewhere', `{"tags":{"params":{${members(2_000)}}}}`],
    ['in an array', `{"tags":[{"params":{${members(2_000)}}}]}`],
    ['behind a number in place of the parameters', `{"params":1,"tags":{${members(2_000)}}}`],
  ])('many keys are refused %s', (_, args) => {
    expect(problemOf(args)).toContain('-32600')
  })

  test('a request may have 10,000 elements, and an agent’s parameters 500,000 more', () => {
    expect(problemOf(`{"tags":[${'1,'.repeat(9_990)}1]}`)).toBeUndefined()
    expect(problemOf(`{"tags":[${'1,'.repeat(10_001)}1]}`)).toContain('10000 elements')
    expect(problemOf(`{"params":[${'1,'.repeat(500_000)}1]}`)).toBeUndefined()
    expect(problemOf(`{"params":[${'1,'.repeat(1_000_001)}1]}`)).toContain('more than 1000000 elements')
  })

  test('a number of 1,000 characters is read, a longer one is refused, and blanks do not count', () => {
    const digits = '1'.repeat(1_000)
    expect(problemOf(`{"a":${digits}}`)).toBeUndefined()
    expect(problemOf(`{"a":${' '.repeat(5_000)}1${' '.repeat(5_000)}}`)).toBeUndefined()
    for (const text of [`{"a":1${digits}}`, `{"a":0.${digits}}`, `{"a":[1${digits},2]}`, `1${digits}`]) {
      expect(problemOf(text)).toContain('a number of more than 1000 characters')
      expect(parseJson(text)).toMatchObject({ exceeded: 'number' })
    }
    expect(problemOf(`{"a":"${'x'.repeat(5_000)}`)).toContain('-32700')
  })

  test('the error for a repeated key shows a part of a long key', () => {
    const key = 'k'.repeat(100_000)
    expect(problemOf(`{"${key}":1,"${key}":2}`)?.length).toBeLessThan(200)
  })
})

test.each([
  [String.raw`\"`, 'an escaped quote'],
  [String.raw`\\`, 'a backslash'],
  [String.raw`a\\\"b`, 'both'],
  [String.raw`\\\\`, 'two backslashes'],
])('scan - a string that ends with %s (%s) ends where JSON says', (inner) => {
  expect(memberText(`{"a":"${inner}","b":"x${inner}y"}`, 'b')).toBe(`"x${inner}y"`)
  expect(elementTexts(`["${inner}","${inner}${inner}",1]`)).toEqual([`"${inner}"`, `"${inner}${inner}"`, '1'])
})
