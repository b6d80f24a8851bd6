import type { Random } from '@signalbox/testkit/random'
import { expect } from 'vitest'

import { timesOf } from '../../src/schedules/times.ts'
import type { Expression } from './minute-scan.ts'
import { EVERY_MINUTE, randomExpression, ScannedZone } from './minute-scan.ts'

const HOURS_MS = 3 * 3_600_000

/** Compares the times of a year with those of the scan, and each minute around the changes of the clock. */
export function compareYear(zoneName: string, year: number, random: Random): number {
  const zone = new ScannedZone(zoneName)
  const [from, to] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)]
  let compared = compare(zone, randomExpression(random), from, to)
  for (const change of zone.changes(from, to)) {
    compared += compare(zone, EVERY_MINUTE, change - HOURS_MS, change + HOURS_MS)
  }
  return compared
}

function compare(zone: ScannedZone, expression: Expression, from: number, to: number): number {
  const next = timesOf(
    {
      id: 'x',
      cron: expression.text,
      time_zone: zone.name,
      target: { type: 'queues', channel: 'x' },
      message: { body: '' },
    },
    0,
  )
  const times: string[] = []
  for (let time = next(from); time !== undefined && time < to; time = next(time)) times.push(iso(time))
  const scanned = zone.times(expression, from, to).map(iso)
  expect([zone.name, expression.text, times]).toEqual([zone.name, expression.text, scanned])
  return times.length
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
