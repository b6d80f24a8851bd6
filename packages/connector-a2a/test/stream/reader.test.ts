import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { describe, expect, test } from 'vitest'

import { EventReader } from '../../src/stream/event-reader.ts'

interface Read {
  readonly event: string | undefined
  readonly data: string
}

/** Reads the bytes in these chunks; data as the text that it is. */
function read(
  chunks: readonly Uint8Array[],
  { max = 10_485_760, end = true } = {},
): { events: Read[]; whole: boolean } {
  const events: Read[] = []
  const reader = new EventReader(max, ({ event, data }) =>
    events.push({ event, data: Buffer.from(data, 'latin1').toString('utf8') }),
  )
  let whole = true
  for (const chunk of chunks) whole = reader.feed(Buffer.from(chunk)) && whole
  if (end) reader.end()
  return { events, whole }
}

const bytes = (text: string): Buffer => Buffer.from(text)
const oneByOne = (text: string): Buffer[] => [...bytes(text)].map((byte) => Buffer.from([byte]))
const e = (data: string, event?: string): Read => ({ event, data })

const FRAMINGS: readonly (readonly [string, string, readonly Read[]])[] = [
  ['LF', 'event: a\ndata: 1\n\ndata: 2\n\n', [e('1', 'a'), e('2')]],
  ['CRLF', 'event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n', [e('1', 'a'), e('2')]],
  ['CR', 'event: a\rdata: 1\r\rdata: 2\r\r', [e('1', 'a'), e('2')]],
  ['line ends of all kinds', 'event: a\r\ndata: 1\r\n\rdata: 2\n\r\ndata: 3\r\r', [e('1', 'a'), e('2'), e('3')]],
  ['no blank line at the end', 'data: 1\n\ndata: 2\n', [e('1'), e('2')]],
  ['no line end at the end', 'data: 1\n\ndata: 2', [e('1'), e('2')]],
  ['a byte order mark', '\ufeffdata: 1\n\n', [e('1')]],
  ['comments', ': hello\n\ndata: 1\n: between\ndata: 2\n:\n\n:bye\n', [e('1\n2')]],
  ['data of several lines', 'data: a\ndata\ndata:  b\ndata:c\n\n', [e('a\n\n b\nc')]],
  ['fields that nobody knows', 'foo: bar\nid: 7\nretry: 10\nretry: x\nnothing\ndata: 1\n\n', [e('1')]],
  ['events without data', 'event: a\n\nid: 1\n\ndata: 1\n\n', [e('1')]],
  ['an event name of its own event only', 'event: a\n\ndata: 1\n\n', [e('1')]],
  ['characters of two, three and four bytes', 'event: größe\ndata: "€ 🙂 ё"\n\n', []],
  ['nothing', '', []],
]

describe('A8 - framing', () => {
  for (const [name, text, expected] of FRAMINGS) {
    test(`reader - ${name}, in one piece and byte by byte`, () => {
      const events =
        expected.length > 0 || text === '' ? expected : [{ event: bytes('größe').toString('latin1'), data: '"€ 🙂 ё"' }]
      expect(read([bytes(text)]).events).toEqual(events)
      expect(read(oneByOne(text)).events).toEqual(events)
    })
  }

  test('reader - an event that breaks off is not read unless the response has ended', () => {
    expect(read([bytes('data: 1\n\ndata: 2\n')], { end: false }).events).toEqual([e('1')])
    expect(read([bytes('data: 1\r\n\r')], { end: false }).events).toEqual([e('1')])
  })

  test('reader - an event of 1 MiB, in chunks of any size', () => {
    const data = 'äb'.repeat(349_525)
    const whole = bytes(`data: ${data}\n\n`)
    for (const size of [whole.length, 65_536, 1_001, 7]) {
      const chunks: Buffer[] = []
      for (let at = 0; at < whole.length; at += size) chunks.push(whole.subarray(at, at + size))
      const { events } = read(chunks)
      expect(events.length).toBe(1)
      expect(events[0]?.data === data).toBe(true)
    }
  })

  test('reader - an event over the limit is refused, however it comes; one of the limit is not', () => {
    const limit = 10_000
    const exactly = `data: ${'x'.repeat(limit)}\n\n`
    const over = `data: ${'x'.repeat(limit + 1)}\n\n`
    const lines = `${'data: xxxxxxxxx\n'.repeat(limit / 10 + 1)}\n`
    const endless = `data: ${'x'.repeat(3 * limit)}`
    expect(read([bytes(exactly)], { max: limit })).toEqual({ events: [e('x'.repeat(limit))], whole: true })
    expect(read(oneByOne(exactly), { max: limit }).whole).toBe(true)
    for (const text of [over, lines, endless, `event: ${'x'.repeat(2 * limit)}`, `id: ${'x'.repeat(2 * limit)}`]) {
      expect(read([bytes(text)], { max: limit }).events).toEqual([])
      expect(read(oneByOne(text), { max: limit }).whole).toBe(false)
    }
    // Comments are skipped, not kept.
    expect(read([bytes(`:${'x'.repeat(3 * limit)}`), bytes('\ndata: 1\n\n')], { max: limit }).events).toEqual([e('1')])
  })

  test('reader - random events, chunks and line ends are read back equal', () => {
    const line = fc.stringMatching(/^[^\r\n]{0,12}$/)
    const character = fc.constantFrom('a', ' ', ':', 'ä', '€', '🙂', '\u2028', '\0', '\ufeff', '{', '"')
    const text = fc.array(character, { maxLength: 12 }).map((characters) => characters.join(''))
    const lineEnd = fc.constantFrom('\n', '\r', '\r\n')
    const event = fc.record({
      name: fc.option(fc.constantFrom('task.status', 'message', 'x'), { nil: undefined }),
      data: fc.array(fc.oneof(line, text), { minLength: 1, maxLength: 4 }),
      comment: fc.option(text, { nil: undefined }),
      ends: fc.array(lineEnd, { minLength: 8, maxLength: 8 }),
    })
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }),
        fc.boolean(),
        (events, sizes, mark) => {
          const whole = Buffer.from(
            (mark ? '\ufeff' : '') +
              events
                .map(({ name, data, comment, ends }) => {
                  // A lone CR before an LF would make one line end of two: the same kind throughout one event.
                  const end = ends[0] ?? '\n'
                  const lines = [
                    ...(comment === undefined ? [] : [`:${comment}`]),
                    ...(name === undefined ? [] : [`event: ${name}`]),
                    ...data.map((value) => `data: ${value}`),
                    '',
                  ]
                  return lines.map((one) => one + end).join('')
                })
                .join(''),
          )
          const chunks: Buffer[] = []
          for (let at = 0, n = 0; at < whole.length; n++) {
            const size = sizes[n % sizes.length] ?? 1
            chunks.push(whole.subarray(at, at + size))
            at += size
          }
          expect(read(chunks).events).toEqual(
            events.map(({ name, data }) => ({ event: name, data: Buffer.from(data.join('\n')).toString() })),
          )
        },
      ),
      { numRuns: cases(400), seed: 7 },
    )
  })
})
