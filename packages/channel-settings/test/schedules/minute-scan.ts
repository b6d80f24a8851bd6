import type { Random } from '@signalbox/testkit/random'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** The allowed values of the five fields of a cron expression, in their order; undefined for `*`. */
type Fields = readonly (ReadonlySet<number> | undefined)[]

export interface Expression {
  readonly text: string
  readonly fields: Fields
}

/** The ranges of the fields: minute, hour, day of the month, month, day of the week. */
const RANGES = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const

/** Returns an expression with about one to ten times a day, most of them at night, when clocks change. */
export function randomExpression(random: Random): Expression {
  const hour = random.chance(0.6) ? random.integer(0, 3) : random.integer(0, 23)
  const few = (from: number, to: number): number[] => {
    const count = random.integer(1, 3)
    return Array.from({ length: count }, () => random.integer(from, to))
  }
  const parts = [few(0, 59), random.chance(0.5) ? [hour] : [hour, ...few(0, 23)], undefined, undefined, undefined] as (
    | number[]
    | undefined
  )[]
  if (random.chance(0.1)) parts[2] = few(1, 31)
  if (random.chance(0.1)) parts[3] = few(1, 12)
  if (random.chance(0.1)) parts[4] = few(0, 6)
  return {
    text: parts.map((part) => part?.join(',') ?? '*').join(' '),
    fields: parts.map((part) => part && new Set(part)),
  }
}

/** `* * * * *` */
export const EVERY_MINUTE: Expression = { text: '* * * * *', fields: RANGES.map(() => undefined) }

function matches({ fields }: Expression, wall: number): boolean {
  const [minute, hour, day, month, weekday] = fields
  if (minute?.has((wall / MINUTE_MS) % 60) === false) return false
  if (hour?.has(Math.floor(wall / HOUR_MS) % 24) === false) return false
  const date = new Date(wall)
  if (month?.has(date.getUTCMonth() + 1) === false) return false
  const [ofMonth, ofWeek] = [day?.has(date.getUTCDate()), weekday?.has(date.getUTCDay())]
  // With both fields, cron takes the days of either.
  return ofMonth === undefined || ofWeek === undefined ? ofMonth !== false && ofWeek !== false : ofMonth || ofWeek
}

/** A zone by its offsets, which `Intl` names, and nothing else. */
export class ScannedZone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #offsets = new Map<number, number>()

  constructor(name: string) {
    this.name = name
    this.#format = new Intl.DateTimeFormat('en-GB', { timeZone: name, timeZoneName: 'longOffset' })
  }

  #offset(time: number): number {
    const known = this.#offsets.get(time)
    if (known !== undefined) return known
    const name = this.#format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours, minutes = '0'] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(name) ?? []
    const offset = (sign === '-' ? -1 : 1) * ((Number(hours ?? 0) * 60 + Number(minutes)) * MINUTE_MS)
    this.#offsets.set(time, offset)
    return offset
  }

  /** Yields each minute with its offset. Looks at every minute of an hour in which the offset changes. */
  *minutes(from: number, to: number): Generator<{ readonly time: number; readonly offset: number }> {
    let offset = this.#offset(from)
    for (let hour = from; hour < to; hour += HOUR_MS) {
      const after = this.#offset(hour + HOUR_MS)
      for (let time = hour; time < hour + HOUR_MS; time += MINUTE_MS) {
        yield { time, offset: after === offset ? offset : this.#offset(time) }
      }
      offset = after
    }
  }

  /** Returns the moments at which the offset changes. */
  changes(from: number, to: number): readonly number[] {
    const found: number[] = []
    let last = this.#offset(from)
    for (const { time, offset } of this.minutes(from, to)) {
      if (offset !== last) found.push(time)
      last = offset
    }
    return found
  }

  /** Returns the times of an expression: skipped ones at the end of the gap, repeated ones once. */
  times(expression: Expression, from: number, to: number): readonly number[] {
    const found: number[] = []
    let shown = from - 2 * HOUR_MS + this.#offset(from - 2 * HOUR_MS)
    for (const { time, offset } of this.minutes(from - 2 * HOUR_MS, to)) {
      let isDue = false
      for (let wall = shown + MINUTE_MS; wall <= time + offset; wall += MINUTE_MS) {
        if (matches(expression, wall)) isDue = true
      }
      shown = Math.max(shown, time + offset)
      if (isDue && time > from) found.push(time)
    }
    return found
  }
}

export const CRON_ZONES: readonly string[] = Intl.supportedValuesOf('timeZone')
