import { Buffer } from 'node:buffer'

import { describe, expect, test } from 'vitest'

import { escapedSize, LongBytes, TextParts } from '../src/index.ts'

/** Every byte of ASCII, and characters of two, three and four bytes, many times. */
const ALL = `${String.fromCharCode(...Array.from({ length: 128 }, (_, code) => code))}é\u2028😀`.repeat(1_000)

const bytesOf = (text: string) => new LongBytes(Buffer.from(text))

describe('long texts - a text in parts', () => {
  test('equals the text that JSON.stringify returns, at both levels of escapes', () => {
    const others = {
      metadata: ALL,
      tags: { [ALL.slice(0, 200)]: ALL, short: '"' },
      n: 1,
      none: undefined,
      list: [null, true],
    }
    const want = JSON.stringify([{ body: ALL, ...others }])
    const parts = TextParts.json([{ body: bytesOf(ALL), ...others }])
    expect(String(parts)).toBe(want)
    expect(String(new TextParts().add('{"text":').addQuoted(parts).add('}'))).toBe(JSON.stringify({ text: want }))
  })

  test('has the counted number of bytes, without escaping a body', () => {
    for (const text of [
      TextParts.json({ body: bytesOf(ALL) }),
      new TextParts().addQuoted(TextParts.json([bytesOf(ALL)])),
    ]) {
      expect(text.byteLength).toBe(Buffer.byteLength(String(text)))
    }
    expect(escapedSize(Buffer.from(ALL))).toBe(Buffer.byteLength(JSON.stringify(ALL)) - '""'.length)
  })

  test('is written in pieces of bounded size', () => {
    const body = Buffer.alloc(10_000_000, 1)
    const text = new TextParts().addQuoted(TextParts.json([new LongBytes(body)]))
    expect(text.heldBytes).toBeLessThan(body.byteLength + 100)
    let size = 0
    for (const piece of text.pieces()) {
      expect(piece.byteLength).toBeLessThan(1_000_000)
      size += piece.byteLength
    }
    expect(size).toBe(text.byteLength)
    expect(size).toBeGreaterThan(70_000_000)
  })

  test('has bytes that are not UTF-8 in base64', () => {
    const body = Buffer.concat([Buffer.from([0xff]), Buffer.from(ALL)])
    expect(JSON.parse(String(TextParts.json({ body: new LongBytes(body) })))).toEqual({ body: body.toString('base64') })
  })
})
