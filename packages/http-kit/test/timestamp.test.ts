import { expect, test } from 'vitest'

import { parseTimestamp, timestampRefusal } from '../src/internal.ts'

test.each([
  // What JavaScript, Python, Go, Java, PHP, .NET, date(1) and forms in browsers write.
  ['2026-01-31T09:30:00.250Z', '2026-01-31T09:30:00.250Z'],
  ['2026-01-31T09:30:00.250000+00:00', '2026-01-31T09:30:00.250Z'],
  ['2026-01-31T09:30:00.25+01:00', '2026-01-31T08:30:00.250Z'],
  ['2026-01-31T09:30Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30+0530', '2026-01-31T04:00:00.000Z'],
  ['2026-01-31T09:30:00-0330', '2026-01-31T13:00:00.000Z'],
  ['2026-01-31T09:30:00.2500000+01:00', '2026-01-31T08:30:00.250Z'],
  ['2024-02-29T00:00+00:00', '2024-02-29T00:00:00.000Z'],
  ['0050-03-01T00:00:00Z', '0050-03-01T00:00:00.000Z'],
  // What is finer than a millisecond rounds up.
  ['2026-01-31T09:30:00.250000001Z', '2026-01-31T09:30:00.251Z'],
])('timestamps - %s is taken', (text, moment) => {
  const milliseconds = parseTimestamp(text)
  expect(milliseconds === undefined ? undefined : new Date(milliseconds).toISOString()).toBe(moment)
})

test.each([
  '2026-02-30T00:00Z',
  '2025-02-29T00:00:00Z',
  '2026-00-01T00:00Z',
  '2026-13-01T00:00Z',
  '2026-01-01T24:00Z',
  '2026-01-01T00:60Z',
  '2026-01-01T00:00:60Z',
  '2026-01-01T00:00+24:00',
  '2026-01-01T00:00+0060',
  '2026-01-01T00:00.5Z',
  '2026-01-01T00:00:00.1234567890Z',
  '20260101T000000Z',
  '2026-01-01',
])('timestamps - %s is refused', (text) => {
  expect(parseTimestamp(text)).toBeUndefined()
  expect(timestampRefusal(text)).toMatch(/^an ISO 8601 timestamp with date, time and time zone, such as [^(]*$/)
})

test.each(['2026-01-31T09:30', '2026-01-31T09:30:00', '2026-01-31T09:30:00.250'])(
  'timestamps - without a time zone %s is refused, and the text says why',
  (text) => {
    expect(parseTimestamp(text)).toBeUndefined()
    expect(timestampRefusal(text)).toMatch(/ \(it has no time zone, and so could be several moments; add Z for UTC\)$/)
  },
)
