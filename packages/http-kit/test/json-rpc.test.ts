import { Buffer } from 'node:buffer'
import v8 from 'node:v8'

import * as fc from 'fast-check'
import { anyCharacter } from '@signalbox/testkit/any-character'
import { cases } from '@signalbox/testkit/property-cases'
import { describe, expect, test } from 'vitest'

import { JsonRpcError, parseJsonRpc, Refusal } from '../src/index.ts'
import {
  allSteps,
  RefusedError,
  errorText,
  idKey,
  jsonRpcErrorText,
  MAX_JSON_KEYS,
  MAX_JSON_PARTS,
  parseJson,
  memberText,
  readRequestId,
  scanJsonRpc,
  successText,
} from '../src/internal.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

function bodyWithArrays(count: number): string {
  return `{"jsonrpc":"2.0","id":5,"method":"a","params":{"x":[${'[],'.repeat(count)}0]}}`
}

/** The error a body is refused with. */
function refusal(body: string | Uint8Array, limits = {}): JsonRpcError {
  try {
    parseJsonRpc(typeof body === 'string' ? bytes(body) : body, limits)
  } catch (error) {
    if (error instanceof JsonRpcError) return error
    throw error
  }
  throw new Error(`was not refused: ${String(body).slice(0, 100)}`)
}

/** A request of so many levels, the request's own included. */
function nestedBody(levels: number): string {
  const nested = `${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}`
  return `{"jsonrpc":"2.0","method":"a","params":{"x":${nested}},"id":4}`
}

/** A request of so many keys, the envelope's four included. */
function bodyWithParts(parts: number): string {
  return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[${'{},'.repeat(parts - 11)}""]}}`
}

function bodyWithKeys(keys: number): string {
  const members = Array.from({ length: keys - 4 }, (_, n) => `"k${n}":0`)
  return `{"jsonrpc":"2.0","id":1,"method":"a","params":{${members.join(',')}}}`
}

/** The bytes in use in V8's old generation. */
function oldGeneration(): number {
  return v8.getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0
}

/** `invalid` for JSON that is no message, `malformed` for what is not JSON. */
function verdict(text: string): 'message' | 'invalid' | 'malformed' {
  try {
    parseJsonRpc(bytes(text))
    return 'message'
  } catch (error) {
    if (!(error instanceof JsonRpcError)) throw error
    return error.code === -32700 ? 'malformed' : 'invalid'
  }
}

describe('J1', () => {
  test.each([
    '1',
    '0',
    '-7',
    '9007199254740993',
    '-0',
    '123456789012345678901234567890',
    '"a"',
    '""',
    '"\\u00e9\\n\\""',
    '"\u{1f600}"',
  ])('J1 - id %s is echoed as it was written', (id) => {
    const message = parseJsonRpc(bytes(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`))
    expect(message).toMatchObject({ kind: 'request', id, method: 'ping' })
    expect(successText(id, '{}')).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
  })

  test.each(['null', '1.5', '1.0', '1e2', '1E+2', 'true', 'false', '[]', '[1]', '{}', '{"id":1}'])(
    'J1 - id %s is refused with -32600 and not echoed',
    (id) => {
      const error = refusal(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      expect(error.code).toBe(-32600)
      expect(error.id).toBeUndefined()
      expect(error.message).toContain('id must be a string, or an integer')
    },
  )

  test('J1 - blanks around the id are not part of it, in any position', () => {
    expect(parseJsonRpc(bytes(' {\n"id" :\t 42 \r\n, "method":"a","jsonrpc":"2.0"} '))).toMatchObject({ id: '42' })
    expect(parseJsonRpc(bytes('{"method":"a","jsonrpc":"2.0","id": "x" }'))).toMatchObject({ id: '"x"' })
  })

  test('J1 - an id inside params is not the id of the message', () => {
    const message = parseJsonRpc(bytes('{"jsonrpc":"2.0","method":"a","params":{"id":7,"x":[{"id":8}]}}'))
    expect(message.kind).toBe('notification')
  })

  test('J1 - ids written in different ways have one key', () => {
    expect(idKey('"\\u0061"')).toBe(idKey('"a"'))
    expect(idKey('"1"')).not.toBe(idKey('1'))
    expect(idKey('9007199254740993')).not.toBe(idKey('9007199254740992'))
  })
})

describe('envelope', () => {
  test.each(['jsonrpc', 'id', 'method', 'params'])('J2 - the key %s twice is refused, equal values as well', (key) => {
    const values: Record<string, string> = { jsonrpc: '"2.0"', id: '1', method: '"a"', params: '{}' }
    const members = Object.entries(values).map(([name, value]) => `"${name}":${value}`)
    const error = refusal(`{${[...members, `"${key}":${values[key]}`].join(',')}}`)
    expect(error.code).toBe(-32600)
    expect(error.message).toContain(`"${key}"`)
    expect(error.id).toBe(key === 'id' ? undefined : '1')
  })

  test('J2 - a key written with escapes is the same key', () => {
    expect(refusal('{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"a"}').message).toContain('"id" appears twice')
    expect(parseJsonRpc(bytes('{"jsonrpc":"2.0","\\u0069d":5,"m\\u0065thod":"a"}'))).toMatchObject({
      id: '5',
      method: 'a',
    })
  })

  test('J2 - repeated keys further in are not the envelope’s', () => {
    expect(
      parseJsonRpc(bytes('{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":1,"id":2},"x":1,"x":2}')),
    ).toMatchObject({
      params: { id: 2 },
      paramsText: '{"id":1,"id":2}',
    })
  })

  test.each(['[]', 'null', '1', '"text"', 'true'])(
    'J2, RPC-4 - params %s is refused with -32602 and the id',
    (params) => {
      const error = refusal(`{"jsonrpc":"2.0","id":"q","method":"a","params":${params}}`)
      expect(error).toMatchObject({ code: -32602, id: '"q"' })
    },
  )

  test.each(['[]', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])('J2 - the batch %s is refused', (body) => {
    expect(refusal(body)).toMatchObject({ code: -32600 })
    expect(refusal(body).message).toContain('batches are not supported')
  })

  test.each(['1', 'null', '"x"', 'true'])('RPC-1 - a body that is %s is refused with -32600', (body) => {
    expect(refusal(body)).toMatchObject({ code: -32600 })
  })

  test.each(['"1.0"', '"2"', '2.0', 'null', '["2.0"]', '""'])(
    'RPC-1 - jsonrpc %s is refused with -32600 and the id',
    (version) => {
      expect(refusal(`{"jsonrpc":${version},"id":3,"method":"a"}`)).toMatchObject({ code: -32600, id: '3' })
    },
  )

  test('RPC-1 - jsonrpc left out is refused with -32600', () => {
    expect(refusal('{"id":3,"method":"a"}')).toMatchObject({ code: -32600, id: '3' })
  })

  test.each(['""', 'null', '1', '[]', '{}'])('RPC-3 - method %s is refused with -32600 and the id', (method) => {
    expect(refusal(`{"jsonrpc":"2.0","id":3,"method":${method}}`)).toMatchObject({ code: -32600, id: '3' })
  })

  test('RPC-3 - method left out is refused with -32600', () => {
    expect(refusal('{"jsonrpc":"2.0","id":3}')).toMatchObject({ code: -32600, id: '3' })
    expect(refusal('{"jsonrpc":"2.0"}')).toMatchObject({ code: -32600 })
  })

  test('J4 - __proto__ and constructor are data', () => {
    const message = parseJsonRpc(
      bytes(
        '{"jsonrpc":"2.0","id":1,"__proto__":{"method":"evil"},"method":"a","params":{"__proto__":{"x":1},"constructor":2}}',
      ),
    )
    if (message.kind !== 'request') throw new Error(message.kind)
    expect(message.method).toBe('a')
    expect(Object.getPrototypeOf(message.params)).toBe(Object.prototype)
    expect(Object.keys(message.params ?? {})).toEqual(['__proto__', 'constructor'])
    expect({}).not.toHaveProperty('x')
    expect(refusal('{"jsonrpc":"2.0","id":1,"__proto__":{"method":"evil"}}')).toMatchObject({ code: -32600 })
  })

  test('responses - result and error keep their source text', () => {
    expect(parseJsonRpc(bytes('{"jsonrpc":"2.0","id":7,"result": {"b":1,"a":1e400, "b":9007199254740993} }'))).toEqual({
      kind: 'response',
      id: '7',
      resultText: '{"b":1,"a":1e400, "b":9007199254740993}',
      errorText: undefined,
    })
    expect(parseJsonRpc(bytes('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'))).toMatchObject({
      kind: 'response',
      errorText: '{"code":1,"message":"x"}',
    })
    expect(refusal('{"jsonrpc":"2.0","id":1,"result":1,"error":{}}').code).toBe(-32600)
    expect(refusal('{"jsonrpc":"2.0","id":null,"result":1}').code).toBe(-32600)
    expect(refusal('{"jsonrpc":"2.0","result":1}').code).toBe(-32600)
  })
})

describe('text', () => {
  test.each([
    '',
    ' ',
    '{',
    '{"a"}',
    '{"a":}',
    'nul',
    '{"jsonrpc":"2.0",}',
    '\ufeff{}',
    "{'a':1}",
    '{"a":"\n"}',
    '{"a":"x',
    '{"a":01}',
  ])('-32700 - %j is not JSON', (body) => {
    expect(refusal(body)).toMatchObject({ code: -32700 })
    expect(refusal(body).id).toBeUndefined()
  })

  test('RPC-6 - bytes that are not UTF-8 are -32700', () => {
    const bad = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ])
    expect(refusal(bad)).toMatchObject({ code: -32700 })
    expect(refusal(Buffer.from([0xed, 0xa0, 0x80]))).toMatchObject({ code: -32700 })
  })

  test("RPC-6 - a U+FFFD in the client's text is no error", () => {
    expect(parseJsonRpc(bytes('{"jsonrpc":"2.0","id":"\ufffd","method":"a"}'))).toMatchObject({ id: '"\ufffd"' })
  })

  test('J4 - 128 levels are read, 129 are refused with the id, before or after it', () => {
    expect(parseJsonRpc(bytes(nestedBody(128)))).toMatchObject({ id: '4' })
    expect(refusal(nestedBody(129))).toMatchObject({ code: -32600, id: '4' })
    expect(refusal(nestedBody(129)).message).toContain('128 levels')
  })

  test('a large message is read in pieces: other work can run after its scan, and after its values are built', () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"${'\\\\'.repeat(1_000)}"}}`
    const steps = allSteps(scanJsonRpc(bytes(text))).parse()
    expect(steps.next()).toEqual({ done: false, value: undefined })
    expect(steps.next()).toEqual({ done: false, value: undefined })
    expect(steps.next()).toMatchObject({ done: true, value: { id: '1', params: { x: '\\'.repeat(1_000) } } })
  })

  test('the source text of the free-form member is the one that its value has', () => {
    const freeForm = ['params', 'arguments', 'params']
    const blanks = fc.constantFrom('', ' ', '\n')
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), blanks, fc.boolean(), (value, other, blank, isLast) => {
        const free = `"params":${blank}${JSON.stringify(value)}${blank}`
        const members = isLast ? `"a":${JSON.stringify(other)},${free}` : `${free},"a":${JSON.stringify(other)}`
        const text = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"params":[{"params":2}],"arguments":{${members}}}}`
        const message = parseJsonRpc(bytes(text), { freeForm })
        const source = 'freeFormText' in message ? message.freeFormText : undefined
        expect(source?.trim()).toBe(JSON.stringify(value))
      }),
      { seed: 26, numRuns: cases(500) },
    )
    expect(
      parseJsonRpc(bytes('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}'), { freeForm }),
    ).not.toHaveProperty('freeFormText')
  })

  test('J4 - brackets within strings are not levels', () => {
    const text = `${'['.repeat(500)}\\"${'{'.repeat(500)}`
    expect(parseJsonRpc(bytes(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"${text}"}}`))).toMatchObject({
      id: '1',
    })
  })

  test('J4 - a million brackets are refused without a stack overflow', () => {
    expect(refusal('['.repeat(1_000_000))).toMatchObject({ code: -32600 })
    expect(refusal('{"a":'.repeat(1_000_000))).toMatchObject({ code: -32600 })
  })

  test('J4 - 100,000 keys are read, one more is refused, where keys are limited', () => {
    const limits = { maxKeys: MAX_JSON_KEYS }
    expect(parseJsonRpc(bytes(bodyWithKeys(MAX_JSON_KEYS)), limits)).toMatchObject({ id: '1' })
    expect(refusal(bodyWithKeys(MAX_JSON_KEYS + 1), limits)).toMatchObject({ code: -32600, id: '1' })
    expect(parseJsonRpc(bytes(bodyWithKeys(MAX_JSON_KEYS + 1)))).toMatchObject({ id: '1' })
  })

  test('J4 - 200,000 strings, objects and arrays are read, one more is refused on every surface', () => {
    expect(parseJsonRpc(bytes(bodyWithParts(MAX_JSON_PARTS)))).toMatchObject({ id: '1' })
    expect(refusal(bodyWithParts(MAX_JSON_PARTS + 1))).toMatchObject({ code: -32600, id: '1' })
    expect(parseJson(`[${'"",'.repeat(MAX_JSON_PARTS)}1]`)).toMatchObject({ exceeded: 'parts' })
  })

  test('J4 - the rest of a body with too many parts is not read, not even for an id', () => {
    const parts = `"params":{"x":[${'"",'.repeat(MAX_JSON_PARTS)}1]}`
    expect(refusal(`{"jsonrpc":"2.0",${parts},"id":1,"method":"a"}`)).toMatchObject({ code: -32600, id: undefined })
  })

  test('J4 - values that take much memory count against the budget of the body, few do not', () => {
    const taken: number[] = []
    const full = new Refusal('limit', 'full')
    const budget = { charge: (count: number) => (taken.push(count) > 1 ? full : undefined) }
    parseJsonRpc(bytes(bodyWithArrays(100)), {}, budget)
    expect(taken).toEqual([])
    parseJsonRpc(bytes(bodyWithArrays(10_000)), {}, budget)
    expect(taken[0]).toBeGreaterThan(500_000)
    expect(() => parseJsonRpc(bytes(bodyWithArrays(10_000)), {}, budget)).toThrow(RefusedError)
  })

  test('property - the parts of any message come back as they were written', { timeout: 60_000 }, () => {
    const blank = fc.constantFrom('', ' ', '\n', '\t ', '\r\n')
    fc.assert(
      fc.property(
        fc.oneof(
          fc.bigInt().map(String),
          fc.string({ unit: anyCharacter }).map((text) => JSON.stringify(text)),
        ),
        fc.string({ unit: anyCharacter, minLength: 1 }).filter((method) => method.isWellFormed()),
        fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ maxDepth: 4 })),
        fc.array(blank, { minLength: 6, maxLength: 6 }),
        (id, method, params, blanks) => {
          const [a = '', b = '', c = '', d = '', e = '', f = ''] = blanks
          const paramsText = JSON.stringify(params)
          const text = `${a}{${b}"params"${c}:${d}${paramsText}${e},"jsonrpc":"2.0","id":${f}${id}${a},"method":${JSON.stringify(method)}}${b}`
          const message = parseJsonRpc(bytes(text))
          expect(message).toEqual({ kind: 'request', id, method, params: JSON.parse(paramsText), paramsText })
        },
      ),
      { seed: 20_251_125, numRuns: cases(300) },
    )
  })

  test('property - any bytes give a message or a JSON-RPC error', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      '\\',
      '\\"',
      '"id"',
      '"method"',
      '1',
      ' ',
      'null',
      '"jsonrpc":"2.0"',
    )
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 40 }), (fragments) => {
        const text = fragments.join('')
        expect(verdict(text) === 'malformed').toBe(!isJson(text))
      }),
      { seed: 20_251_125, numRuns: cases(3000) },
    )
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('answers', () => {
  test('RPC-5 - an error has the id of its request, or null if it is unknown, and its data', () => {
    expect(errorText(undefined, -32700, 'no "JSON"')).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no \\"JSON\\""}}',
    )
    expect(jsonRpcErrorText(new JsonRpcError(-32602, 'm', { data: { a: 1 }, id: '9007199254740993' }))).toBe(
      '{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32602,"message":"m","data":{"a":1}}}',
    )
  })

  test('S5 - the id of a refused body is read where it can be', () => {
    expect(readRequestId(bytes('{"jsonrpc":"2.0","id":12,"method":"a"}'))).toBe('12')
    expect(readRequestId(bytes('{"jsonrpc":"1.0","id":12,"method":"a"}'))).toBe('12')
    expect(readRequestId(bytes('{"jsonrpc":"2.0","method":"a"}'))).toBeUndefined()
    expect(readRequestId(bytes('{"id":1.5'))).toBeUndefined()
  })

  test('memberText - the last of repeated keys, with its source text', () => {
    expect(memberText('{"a":1,"b":{"a":2},"a": 3.0 }', 'a')).toBe('3.0')
    expect(memberText('{"b":{"a":2}}', 'a')).toBeUndefined()
  })

  test('parse - scavenges free the texts of messages', () => {
    const params = { text: 'a'.repeat(1500) }
    const before = oldGeneration()
    // 110 MB of texts and values: a few scavenges, and no full collection. What other tests left may become old as well.
    for (let id = 0; id < 30_000; id++) {
      parseJsonRpc(bytes(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })))
    }
    expect(oldGeneration() - before).toBeLessThan(25e6)
  })
})
