import { expect, test } from 'vitest'

import { METHODS, translateResult } from '../../src/wire/index.ts'

interface Case {
  readonly name: string
  readonly v10: unknown
  readonly v03: unknown
}

/** Parts that both versions can hold: translated in both directions. */
const PARTS: readonly Case[] = [
  { name: 'text', v10: { text: 'hello' }, v03: { kind: 'text', text: 'hello' } },
  { name: 'empty text', v10: { text: '' }, v03: { kind: 'text', text: '' } },
  {
    name: 'text with metadata',
    v10: { text: 'hello', metadata: { lang: 'en' } },
    v03: { kind: 'text', text: 'hello', metadata: { lang: 'en' } },
  },
  {
    name: 'file by bytes',
    v10: { raw: 'aGVsbG8=', filename: 'hello.txt', mediaType: 'text/plain' },
    v03: { kind: 'file', file: { bytes: 'aGVsbG8=', name: 'hello.txt', mimeType: 'text/plain' } },
  },
  {
    name: 'file by URL',
    v10: { url: 'https://files.example/1', filename: 'one', mediaType: 'image/png', metadata: { page: 1 } },
    v03: {
      kind: 'file',
      file: { uri: 'https://files.example/1', name: 'one', mimeType: 'image/png' },
      metadata: { page: 1 },
    },
  },
  { name: 'file without a name', v10: { raw: '' }, v03: { kind: 'file', file: { bytes: '' } } },
  { name: 'data', v10: { data: { a: [1, null] } }, v03: { kind: 'data', data: { a: [1, null] } } },
  { name: 'a list as data', v10: { data: [1, 2] }, v03: wrapped([1, 2]) },
  { name: 'a string as data', v10: { data: 'x' }, v03: wrapped('x') },
  { name: 'a number as data', v10: { data: 0 }, v03: wrapped(0) },
  { name: 'false as data', v10: { data: false }, v03: wrapped(false) },
  { name: 'null as data', v10: { data: null }, v03: wrapped(null) },
  {
    name: 'a list as data, with metadata',
    v10: { data: [1], metadata: { unit: 'm' } },
    v03: { kind: 'data', data: { value: [1] }, metadata: { unit: 'm', data_part_compat: true } },
  },
]

for (const { name, v10, v03 } of PARTS) {
  test(`A2A versions - parts: ${name}`, () => {
    expect(to03(v10)).toEqual(v03)
    expect(to10(v03)).toEqual(v10)
  })
}

test('A2A versions - parts: 0.3 loses the media type and the file name of text and data', () => {
  expect(to03({ text: '# hi', mediaType: 'text/markdown', filename: 'hi.md' })).toEqual({ kind: 'text', text: '# hi' })
  expect(to03({ data: {}, mediaType: 'application/json', filename: 'x' })).toEqual({ kind: 'data', data: {} })
})

test('A2A versions - parts: members that the target version does not define are left out', () => {
  expect(to03({ text: 'x', kind: 'text', $case: 'text', extra: 1 })).toEqual({ kind: 'text', text: 'x' })
  expect(to10({ kind: 'text', text: 'x', extra: 1 })).toEqual({ text: 'x' })
  expect(to10({ kind: 'file', file: { uri: 'u', size: 3 }, extra: 1 })).toEqual({ url: 'u' })
})

test('A2A versions - parts: a part of 0.3 without its kind is read by its content', () => {
  expect(to10({ text: 'x' })).toEqual({ text: 'x' })
  expect(to10({ file: { bytes: 'eA==' } })).toEqual({ raw: 'eA==' })
  expect(to10({ data: { a: 1 } })).toEqual({ data: { a: 1 } })
})

test('A2A versions - parts: null counts as absent', () => {
  expect(to03({ text: 'x', raw: null, url: null, data: null, metadata: null })).toEqual({ kind: 'text', text: 'x' })
  expect(to10({ kind: 'file', file: { bytes: 'eA==', uri: null, name: null }, metadata: null })).toEqual({
    raw: 'eA==',
  })
})

test('A2A versions - parts: a part without one content is refused by name', () => {
  const one = 'result.message.parts[0] is an object; it must be an object with one of "text", "raw", "url" and "data"'
  expect(() => to03({})).toThrow(one)
  expect(() => to03({ text: 'x', url: 'u' })).toThrow(one)
  expect(() => to03({ text: 1 })).toThrow('result.message.parts[0].text is 1; it must be a string')
  expect(() => to10({ kind: 'video' })).toThrow('result.parts[0].kind is "video"; it must be "text", "file" or "data"')
  expect(() => to10({ kind: 'text' })).toThrow('result.parts[0].text is missing; it must be a string')
  expect(() => to10({ kind: 'file', file: {} })).toThrow(
    'result.parts[0].file is an object; it must be an object with "bytes" or "uri"',
  )
  expect(() => to10({ kind: 'data', data: [1] })).toThrow('result.parts[0].data is an array; it must be an object')
})

function wrapped(value: unknown): unknown {
  return { kind: 'data', data: { value }, metadata: { data_part_compat: true } }
}

function to03(part: unknown): unknown {
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [part] }
  const result = translateResult(METHODS.send, '1.0', '0.3', { message })
  expect(result).toMatchObject({ kind: 'message', messageId: 'm', role: 'agent' })
  return Reflect.get(Object(result), 'parts')[0]
}

function to10(part: unknown): unknown {
  const result = translateResult(METHODS.send, '0.3', '1.0', {
    kind: 'message',
    messageId: 'm',
    role: 'agent',
    parts: [part],
  })
  expect(result).toMatchObject({ message: { messageId: 'm', role: 'ROLE_AGENT' } })
  return Reflect.get(Object(Reflect.get(Object(result), 'message')), 'parts')[0]
}
