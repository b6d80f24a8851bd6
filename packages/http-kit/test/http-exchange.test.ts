import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

import { describe, expect, onTestFinished, test } from 'vitest'

import { AdmissionControl } from '../src/index.ts'
import { escapedSize, forEveryOrigin, hopsOf, hopsProblem, LongBytes, TextParts, withVary } from '../src/internal.ts'
import { route, servePlain } from './support/plain-surface.ts'
import type { PlainExchange } from './support/plain-surface.ts'

const certificates = new URL('../../../apps/server/test/certificates/', import.meta.url)
const certificate = {
  cert: readFileSync(new URL('server.crt', certificates)),
  key: readFileSync(new URL('server.key', certificates)),
}

test('exchange - a reader that does not read its answer is cut off, and its resources are released', async () => {
  const admission = new AdmissionControl()
  let unread = 0
  const answer = (exchange: PlainExchange): void => {
    exchange.answer('x'.repeat(16_000_000))
    unread = admission.use.unreadBytes
  }
  const { port } = await servePlain(route(answer), { frontDoor: { admission, stalledReaderMs: 50 } })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => unread).toBeGreaterThan(16_000_000)
  await expect.poll(() => admission.use).toMatchObject({ requests: 0, bodyBytes: 0, streams: 0, unreadBytes: 0 })
})

test.each([
  ['without TLS', undefined, connect],
  ['with TLS', certificate, (port: number) => connectTls({ port, rejectUnauthorized: false })],
] as const)('exchange - a reader that takes its answer slowly gets the whole of it, %s', async (_how, tls, open) => {
  const answer = 'x'.repeat(24_000_000)
  const frontDoor = { stalledReaderMs: 1_000 }
  const { port } = await servePlain(
    route((exchange) => exchange.answer(answer)),
    { frontDoor },
    tls,
  )
  const socket = open(port)
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  // The whole answer takes three times as long as a reader may take nothing. Each part is more than kernels buffer in
  // small pieces, so that the server sees progress several times a second, also where the process runs slowly.
  let received = 0
  let rests = 0
  for await (const chunk of socket) {
    if (chunk instanceof Uint8Array) received += chunk.byteLength
    if (received < (rests + 1) * 2_000_000) continue
    rests++
    await delay(250)
  }
  expect(received).toBeGreaterThan(answer.length)
  expect(rests).toBe(12)
})

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

test('public document - a name is added to the Vary of the host, whatever its case', () => {
  expect(withVary(undefined, 'A2A-Version')).toEqual({ Vary: 'A2A-Version' })
  expect(withVary({ vary: 'Origin', ETag: '"1"' }, 'A2A-Version')).toEqual({ ETag: '"1"', Vary: 'Origin, A2A-Version' })
  expect(withVary({ Vary: ['Origin', 'Accept'] }, 'A2A-Version')).toEqual({ Vary: 'Origin, Accept, A2A-Version' })
  expect(withVary({ Vary: undefined }, 'A2A-Version')).toEqual({ Vary: 'A2A-Version' })
})

test('public document - the CORS headers of the host give way to one for every origin', () => {
  expect(forEveryOrigin()).toEqual({ 'Access-Control-Allow-Origin': '*' })
  expect(
    forEveryOrigin({ 'access-control-allow-origin': 'https://a.example', 'Access-Control-Allow-Credentials': 'true' }),
  ).toEqual({ 'Access-Control-Allow-Origin': '*' })
})

test.each<[header: string | undefined, hops: number]>([
  [undefined, 0],
  ['0', 0],
  [' 3 ', 3],
  ['2, 7', 7],
  ['-1', Infinity],
  ['three', Infinity],
  ['1234567', Infinity],
])('hops - the header %j counts as %d brokers', (header, hops) => {
  expect(hopsOf(header === undefined ? {} : { 'x-broker-hops': header })).toBe(hops)
})

test('hops - eight brokers are allowed, and an unknown number is not', () => {
  expect(hopsProblem(8)).toBeUndefined()
  expect(hopsProblem(9)).toContain('9 brokers')
  expect(hopsProblem(Infinity)).toContain('an unknown number of brokers')
})

test('texts in parts - a long text is encoded in pieces, and no piece ends within a character', () => {
  for (const shift of ['', 'x']) {
    const text = shift + '🙂'.repeat(1_000_000)
    const parts = TextParts.of(text)
    expect(parts.byteLength).toBe(Buffer.byteLength(text))
    expect(parts.toString() === text).toBe(true)
  }
})

test('texts in parts - a short text stays a string; many short texts are encoded together, and are quoted as one', () => {
  const short = new TextParts().add('[').add('"é"').add(']')
  expect(short.shortest).toBe('["é"]')
  const long = new TextParts().add('[')
  for (let i = 0; i < 10_000; i++) long.add(`${i === 0 ? '' : ','}"number ${i} é"`)
  long.add(']')
  expect(long.shortest).toBe(long)
  const want = JSON.stringify(Array.from({ length: 10_000 }, (_, i) => `number ${i} é`))
  expect(long.toString()).toBe(want)
  expect([...long.pieces()].length).toBeLessThan(10)
  expect(new TextParts().addQuoted(long).toString()).toBe(JSON.stringify(want))
})
