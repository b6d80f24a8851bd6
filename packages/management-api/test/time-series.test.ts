import { expect, test } from 'vitest'

import { MostActive } from '../src/history/histories.ts'
import { PacedReading } from '../src/history/sampling.ts'
import { FINE_STEPS, MINUTES, SeriesTable, STEPS_PER_MINUTE, TimeSeries } from '../src/history/time-series.ts'

const steps = (from: number, to: number) => ({ resolution: 'step', from, to }) as const
const minutes = (from: number, to: number) => ({ resolution: 'minute', from, to }) as const
const NONE = Number.NaN

test('MGMT-15 - a series keeps the last hour of steps, and steps without a value are gaps', () => {
  const series = new TimeSeries('sum', 1_000)
  series.set(1_000, 1)
  series.set(1_003, 4)
  expect(series.values(steps(998, 1_005))).toEqual([NONE, NONE, 1, NONE, NONE, 4, NONE])
  series.set(1_000 + FINE_STEPS, 5)
  expect(series.values(steps(1_000, 1_004))).toEqual([NONE, NONE, NONE, 4])
  series.set(1_000 + 9 * FINE_STEPS, 6)
  expect(series.values(steps(1_000 + 9 * FINE_STEPS - 2, 1_000 + 9 * FINE_STEPS + 1))).toEqual([NONE, NONE, 6])
})

test('MGMT-15 - a minute is the sum, the last or the highest of its steps', () => {
  const first = 20 * STEPS_PER_MINUTE
  const minute = (combine: 'sum' | 'last' | 'max') => {
    const series = new TimeSeries(combine, first)
    for (const [i, value] of [3, 9, NONE, 4].entries()) series.set(first + i, value)
    series.set(first + 2 * STEPS_PER_MINUTE, 1)
    return series.values(minutes(19, 23))
  }
  expect(minute('sum')).toEqual([NONE, 16, NONE, 1])
  expect(minute('last')).toEqual([NONE, 4, NONE, 1])
  expect(minute('max')).toEqual([NONE, 9, NONE, 1])
})

test('MGMT-15 - a series keeps the last day of minutes', () => {
  const series = new TimeSeries('last', 0, true)
  for (let minute = 0; minute <= MINUTES; minute++) series.set(minute * STEPS_PER_MINUTE, minute)
  expect(series.values(minutes(0, 2))).toEqual([NONE, 1])
  expect(series.values(minutes(MINUTES - 1, MINUTES + 1))).toEqual([MINUTES - 1, MINUTES])
})

test('MGMT-15 - totals become counts of their step, and never less than 0', () => {
  const table = new SeriesTable('sum')
  for (const [step, total] of [5, 8, 8, 2].entries()) table.setTotal('calls', step, total)
  expect(table.values('calls', steps(0, 4))).toEqual([5, 3, 0, 0])
  expect(table.values('other', steps(0, 2))).toEqual([null, null])
  table.set('share', 4, 1 / 3)
  expect(table.values('share', steps(4, 5))).toEqual([0.333333])
})

test('MGMT-15 - only a channel that is clearly more active replaces another one', () => {
  const active = new MostActive<string>(2)
  const add = (key: string, weight: number) => active.add(key, weight, () => key)
  add('a', 10)
  add('b', 20)
  expect(add('c', 15)).toBe(undefined)
  expect(add('c', 21)).toBe('c')
  expect(active.list()).toEqual(['c', 'b'])
  expect(add('b', 5)).toBe('b')
  expect(active.list()).toEqual(['b', 'c'])
  for (let i = 0; i < 300; i++) active.decay()
  expect(add('a', 3)).toBe('a')
})

test('MGMT-15 - a slow reading is not awaited, and is followed by a pause', async () => {
  let reads = 0
  const { promise, resolve: answer } = Promise.withResolvers<number>()
  const reading = new PacedReading(() => {
    reads++
    return promise
  })
  expect(await reading.value(5)).toBe(undefined)
  expect(await reading.value(5)).toBe(undefined)
  expect(reads).toBe(1)
  answer(7)
  expect(await reading.value(5)).toBe(7)
  expect(await reading.value(5)).toBe(7)
  expect(reads).toBe(1)
})
