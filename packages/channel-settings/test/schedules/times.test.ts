import { Random } from '@signalbox/testkit/random'
import { expect, test } from 'vitest'

import { lastTime, timeProblems, timesOf } from '../../src/schedules/times.ts'
import { compareYear } from './compare-times.ts'

const TARGET = { target: { type: 'queues', channel: 'jobs' }, message: { body: 'x' } } as const
const NOW = Date.parse('2026-03-01T00:00:00Z')

function times(schedule: object, from: string, count: number, since = 0): readonly string[] {
  const next = timesOf({ id: 'x', ...TARGET, ...schedule }, since)
  const found: string[] = []
  for (let time = next(Date.parse(from)); time !== undefined && found.length < count; time = next(time)) {
    found.push(new Date(time).toISOString().replace(':00.000Z', 'Z'))
  }
  return found
}

// Zones with usual, late, half-hour and two-hour changes, without changes, and with changes of the law.
const ZONES = [
  'America/New_York',
  'America/Santiago',
  'America/St_Johns',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Antarctica/Troll',
  'Asia/Gaza',
  'Asia/Kathmandu',
  'Asia/Tehran',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Pacific/Chatham',
]

test.each(ZONES)('schedules - the times in %s are those of a scan of every minute', (zone) => {
  const random = new Random(zone.length)
  for (const year of [2022, 2026]) expect(compareYear(zone, year, random)).toBeGreaterThan(0)
})

test('schedules - a skipped time is the first moment after the gap, a repeated one its first moment', () => {
  const nightly = { cron: '30 2 * * *', time_zone: 'Europe/Berlin' }
  expect(times(nightly, '2026-03-28T00:00:00Z', 3)).toEqual([
    '2026-03-28T01:30Z',
    '2026-03-29T01:00Z',
    '2026-03-30T00:30Z',
  ])
  expect(times(nightly, '2026-10-24T12:00:00Z', 2)).toEqual(['2026-10-25T00:30Z', '2026-10-26T01:30Z'])
  // All times in the gap, and the first one after it, are one.
  const often = { cron: '*/20 2-3 * * *', time_zone: 'Europe/Berlin' }
  expect(times(often, '2026-03-29T00:30:00Z', 3)).toEqual([
    '2026-03-29T01:00Z',
    '2026-03-29T01:20Z',
    '2026-03-29T01:40Z',
  ])
})

test('schedules - a day that a zone left out is the first moment of the next day', () => {
  const daily = { cron: '0 9 * * *', time_zone: 'Pacific/Apia' }
  expect(times(daily, '2011-12-29T00:00:00Z', 3)).toEqual([
    '2011-12-29T19:00Z',
    '2011-12-30T10:00Z',
    '2011-12-30T19:00Z',
  ])
})

test('schedules - every_seconds is elapsed time from the change that set it', () => {
  const since = Date.parse('2026-03-29T00:59:30Z')
  expect(times({ every_seconds: 1800 }, '2026-03-29T00:00:00Z', 2, since)).toEqual([
    '2026-03-29T01:29:30.000Z',
    '2026-03-29T01:59:30.000Z',
  ])
  expect(times({ every_seconds: 10 }, '2026-03-29T01:00:00Z', 1, since)).toEqual(['2026-03-29T01:00:10.000Z'])
})

test('schedules - at is one time', () => {
  const once = { at: '2026-05-01T09:00+02:00' }
  expect(times(once, '2026-05-01T06:59:59Z', 5)).toEqual(['2026-05-01T07:00Z'])
  expect(times(once, '2026-05-01T07:00:00Z', 5)).toEqual([])
})

test('schedules - the last due time is found among many, with the number of those before it', () => {
  const next = timesOf({ id: 'x', ...TARGET, cron: '*/5 * * * *' }, 0)
  const from = Date.parse('2026-01-01T00:00:00Z')
  expect(lastTime(next, from, from + 299_999)).toBeUndefined()
  expect(lastTime(next, from, from + 300_000)).toEqual({ time: from + 300_000, before: 0 })
  expect(lastTime(next, from, from + 3_599_000)).toEqual({ time: from + 3_300_000, before: 10 })
  const year = lastTime(next, from, Date.parse('2026-12-31T23:59:59Z'))
  expect(year).toEqual({ time: Date.parse('2026-12-31T23:55:00Z'), before: 1_000 })
})

test.each([
  [{ cron: '* * * * * *' }, 'cron', /five fields.*\(6 are given; for seconds use every_seconds\)/],
  [{ cron: '@daily' }, 'cron', /five fields.*\(1 are given\)/],
  [{ cron: '61 * * * *' }, 'cron', /five fields.*minute: 61/],
  [{ cron: '0 0 30 2 *' }, 'cron', /matches a day of the calendar/],
  [{ cron: '0 0 * * *', time_zone: 'Europe/Merlin' }, 'time_zone', /did you mean Europe\/Berlin\?/],
  [{ cron: '0 0 * * *', time_zone: 'tokyo' }, 'time_zone', /did you mean Asia\/Tokyo\?/],
  [{ cron: '0 0 * * *', time_zone: 'Mars/Phobos' }, 'time_zone', /such as Europe\/Berlin$/],
  [{ at: '2026-02-28T23:59:59Z' }, 'at', /later than now/],
])('schedules - %j is refused', (schedule, argument, allowed) => {
  expect(timeProblems({ id: 'x', ...TARGET, ...schedule }, NOW)).toEqual([
    { argument, given: expect.any(String), allowed: expect.stringMatching(allowed) },
  ])
})
