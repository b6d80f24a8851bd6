import { mostSimilar } from '@signalbox/broker-core/internal'
import { parseTimestamp, shownValue } from '@signalbox/http-kit/internal'
import type { ArgumentProblem, GivenSchedule } from '@signalbox/http-kit/internal'
import { Cron } from 'croner'

const DAY_MS = 86_400_000

/** Returns the first time of a schedule after a time, in ms since the epoch; undefined if there is none. */
export type NextTime = (after: number) => number | undefined

/**
 * Returns the times of a schedule.
 * @param since The time from which a schedule with `every_seconds` counts, in ms since the epoch
 * @throws RangeError for a cron expression or a time zone that is not valid; see {@link timeProblems}
 */
export function timesOf({ cron, every_seconds, at, time_zone = 'UTC' }: GivenSchedule, since: number): NextTime {
  if (cron !== undefined) return cronTimes(cron, zoneOf(time_zone))
  if (every_seconds !== undefined) {
    const step = every_seconds * 1000
    return (after) => since + Math.max(1, Math.floor((after - since) / step) + 1) * step
  }
  const time = at === undefined ? undefined : parseTimestamp(at)
  return (after) => (time !== undefined && time > after ? time : undefined)
}

/** Returns the problems of the times of a schedule. */
export function timeProblems(schedule: GivenSchedule, now: number): readonly ArgumentProblem[] {
  const { cron, at, time_zone } = schedule
  const problems: ArgumentProblem[] = []
  if (time_zone !== undefined) {
    try {
      zoneOf(time_zone)
    } catch {
      const similar = similarZone(time_zone)
      const hint = similar === undefined ? '' : `; did you mean ${similar}?`
      const allowed = `a name of the IANA time zones, such as Europe/Berlin${hint}`
      problems.push({ argument: 'time_zone', given: shownValue(time_zone), allowed })
    }
  }
  if (cron !== undefined) {
    const allowed = cronProblem(cron, now)
    if (allowed !== undefined) problems.push({ argument: 'cron', given: shownValue(cron), allowed })
  }
  if (at !== undefined && (parseTimestamp(at) ?? 0) <= now) {
    problems.push({ argument: 'at', given: shownValue(at), allowed: `later than now, ${new Date(now).toISOString()}` })
  }
  return problems
}

function cronProblem(cron: string, now: number): string | undefined {
  const form = 'five fields: minute, hour, day of the month, month, day of the week'
  const fields = cron.trim().split(/\s+/).length
  if (fields !== 5) return `${form} (${fields} are given${fields === 6 ? '; for seconds use every_seconds' : ''})`
  try {
    return wallCron(cron)(now) === undefined ? 'an expression that matches a day of the calendar' : undefined
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return `${form} (${reason})`
  }
}

function similarZone(name: string): string | undefined {
  const zones = Intl.supportedValuesOf('timeZone')
  const city = name.toLowerCase().replaceAll(' ', '_')
  return mostSimilar(name, zones) ?? zones.find((zone) => zone.toLowerCase().split('/').at(-1) === city)
}

/**
 * Returns the times of a cron expression on a clock without daylight saving time: of a calendar in UTC. Only this function
 * uses Croner.
 */
function wallCron(expression: string): NextTime {
  const cron = new Cron(expression, { mode: '5-part', utcOffset: 0, paused: true })
  return (after) => cron.nextRun(new Date(after))?.getTime()
}

/**
 * Returns the times of a cron expression in a time zone. A time that the clocks skip is replaced by the first moment
 * after the gap. Of a time that they show twice only the first moment counts.
 */
function cronTimes(expression: string, zone: Zone): NextTime {
  const nextWall = wallCron(expression)
  return (after) => {
    let wall: number | undefined = after + zone.offsetAt(after)
    for (;;) {
      wall = nextWall(wall)
      if (wall === undefined) return undefined
      const time = zone.timeOf(wall)
      // The wall clock was set back: these times were before.
      if (time > after) return time
    }
  }
}

/** A time zone. Wall times are the ms since the epoch at which a clock in UTC shows the same. */
class Zone {
  readonly #format: Intl.DateTimeFormat

  constructor(name: string) {
    const number = 'numeric'
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      year: number,
      month: number,
      day: number,
      hour: number,
      minute: number,
      second: number,
    })
  }

  /** Returns the time by which the zone is ahead of UTC at a moment, in ms. */
  offsetAt(time: number): number {
    const parts: Record<string, number> = {}
    for (const { type, value } of this.#format.formatToParts(time)) parts[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1000) * 1000
  }

  /** Returns the first moment at which the clocks show a wall time, or the first one after a gap that has it. */
  timeOf(wall: number): number {
    const before = this.offsetAt(wall - DAY_MS)
    const after = this.offsetAt(wall + DAY_MS)
    const [early, late] = [wall - Math.max(before, after), wall - Math.min(before, after)]
    if (early + this.offsetAt(early) === wall) return early
    if (late + this.offsetAt(late) === wall) return late
    // In a gap the clocks change between both.
    let [low, high] = [early, late]
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2000) * 1000
      if (this.offsetAt(middle) === after) high = middle
      else low = middle
    }
    return high
  }
}

const zones = new Map<string, Zone>()

/** @throws RangeError for an unknown zone */
function zoneOf(name: string): Zone {
  let zone = zones.get(name)
  if (zone === undefined) zones.set(name, (zone = new Zone(name)))
  return zone
}

/** The most due times that are counted as missed at once: counting takes time. */
const MAX_COUNTED = 1_000

/** Returns the last time after `from` and until `to`, with the number of those before it; undefined if there is none. */
export function lastTime(
  next: NextTime,
  from: number,
  to: number,
): { readonly time: number; readonly before: number } | undefined {
  let time = next(from)
  if (time === undefined || time > to) return undefined
  let before = 0
  for (; before < MAX_COUNTED; before++) {
    const later = next(time)
    if (later === undefined || later > to) return { time, before }
    time = later
  }
  // There is one after `low`, and none after `high`.
  let [low, high] = [time, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    const later = next(middle)
    if (later !== undefined && later <= to) [low, time] = [middle, later]
    else high = middle
  }
  return { time, before }
}
