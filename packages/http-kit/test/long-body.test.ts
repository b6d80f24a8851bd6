import { array, assert, constantFrom, nat, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { JsonRpcMessage } from '../src/index.ts'
import { parseJsonRpc } from '../src/index.ts'
import { allSteps, encodedBody, scanJsonRpc } from '../src/internal.ts'
import { bodyOf } from '../src/json/long-body.ts'

const SEED = 20261128

/** Parts of a JSON text, as source: each ends where a piece of the decoded text may end. */
const VALID = [
  'a',
  'é',
  '€',
  '😀',
  '\\n',
  '\\"',
  '\\\\',
  '\\/',
  '\\u00e9',
  '\\ud83d\\ude00',
  '\\uD83D\\uDE00',
  '\\u2028',
]
const INVALID = ['\n', '\\x', '\\u12', '\\ud800', '\\ude00', '\\ud83d\\n']

function call(source: string, more = ''): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"channel":"c","body" : "${source}"${more}}}}`,
  )
}

function argumentsOf(message: JsonRpcMessage): { readonly body: string } {
  const { params } = message as { readonly params?: { readonly arguments?: { readonly body: string } } }
  return params?.arguments ?? { body: '' }
}

function parse(body: Buffer, longBody: boolean): JsonRpcMessage {
  return allSteps(allSteps(scanJsonRpc(body, { longBody, uniqueKeys: true })).parse())
}

function outcomeOf(body: Buffer, longBody: boolean): unknown {
  try {
    const args = argumentsOf(parse(body, longBody))
    const text = bodyOf(args) ?? Buffer.from(args.body)
    return Buffer.from(text).toString('base64')
  } catch (error) {
    return String(error)
  }
}

/** A text of more than a megabyte, in which a part is at any place around the end of a piece. */
interface LongText {
  readonly ahead: number
  readonly around: readonly string[]
}

const longText = record({
  ahead: nat({ max: 40 }),
  around: array(constantFrom(...VALID), { minLength: 1, maxLength: 30 }),
})

function sourceOf({ ahead, around }: LongText): string {
  const period = around.join('')
  return 'x'.repeat(ahead) + period.repeat(Math.ceil(1_200_000 / period.length))
}

function calledWith(body: string): { readonly body: string } {
  return argumentsOf(parse(call(body), true))
}

describe('long bodies', () => {
  test('long bodies - a body is the same whether it is cut out of its JSON or not, with any escapes at any place', () => {
    assert(
      property(longText, (text) => {
        const json = call(sourceOf(text))
        expect(outcomeOf(json, true) === outcomeOf(json, false)).toBe(true)
      }),
      { seed: SEED, numRuns: 40 },
    )
  })

  test('long bodies - a body of escaped surrogate pairs is cut out, wherever its pieces would end', () => {
    for (let ahead = 0; ahead < 12; ahead++) {
      const source = `${'x'.repeat(ahead)}${'\\ud83d\\ude00'.repeat(90_000)}`
      expect(bodyOf(calledWith(source))?.byteLength).toBe(ahead + 360_000)
    }
  })

  test('long bodies - the faults of a long body are those of its JSON', () => {
    assert(
      property(longText, constantFrom(...INVALID), (text, fault) => {
        const json = call(`${sourceOf(text)}${fault}xxxxxxxxxxxx`)
        expect(outcomeOf(json, true) === outcomeOf(json, false)).toBe(true)
      }),
      { seed: SEED, numRuns: 20 },
    )
    const notUtf8 = Buffer.concat([
      call('x'.repeat(1_200_000)).subarray(0, -4),
      Buffer.from([0xc3]),
      Buffer.from('"}}}'),
    ])
    expect(outcomeOf(notUtf8, true)).toBe(outcomeOf(notUtf8, false))
    expect(outcomeOf(notUtf8, true)).toMatch(/UTF-8/)
  })

  test('long bodies - only the body of a call is cut out, and repeated keys are refused as before', () => {
    const long = 'y'.repeat(1_200_000)
    const others = [
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"body":"${long}"}}`,
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"tags":{"body":"${long}"}}}}`,
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a\\"body":"${long}"}}}`,
      `{"jsonrpc":"2.0","method":"m","params":{"arguments":{"body":"${long}"}}}`,
    ]
    for (const text of others) {
      const message = parse(Buffer.from(text), true)
      expect(bodyOf(argumentsOf(message))).toBeUndefined()
      expect(message).toEqual(parseJsonRpc(Buffer.from(text)))
    }
    expect(() => parse(call(long, ',"body":"again"'), true)).toThrow('the key "body" appears twice in one object')
    expect(() => parse(call(long, ',"channel":"d"'), true)).toThrow('the key "channel" appears twice in one object')
  })

  test('long bodies - a tool gets the bytes of a body that was cut out, and arguments differ where bodies do', async () => {
    const [one, same, other] = [1_200_000, 1_200_000, 1_200_001].map((length) => calledWith('z'.repeat(length)))
    if (!one || !same || !other) throw new Error('three calls were read')
    const caller = { clientId: 'a' }
    expect(bodyOf(other)?.byteLength).toBe(1_200_001)
    expect(await encodedBody(other, caller)).toBe(bodyOf(other))
    expect(one.body).toBe(same.body)
    expect(one.body).not.toBe(other.body)
    // A short body that says the same as the stand-in is that text.
    expect(Buffer.from(await encodedBody({ body: one.body }, caller)).toString()).toBe(one.body)
  })
})
