import { Random } from '@signalbox/testkit/random'
import { expect, test } from 'vitest'

import { compareYear } from './compare-times.ts'
import { CRON_ZONES } from './minute-scan.ts'

const ZONES = 200
const YEARS = { first: 2020, last: 2040 }

test('schedules - the times of 200 zones in 20 years are those of a scan of every minute', { timeout: 0 }, () => {
  const random = new Random(1)
  const zones = CRON_ZONES.toSorted(() => random.next() - 0.5).slice(0, ZONES)
  let compared = 0
  for (const zone of zones) {
    for (let year = YEARS.first; year < YEARS.last; year++) compared += compareYear(zone, year, random)
  }
  expect(compared).toBeGreaterThan(1_000_000)
})
