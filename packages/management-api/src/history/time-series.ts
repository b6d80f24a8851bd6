/** The values of a series as they are shown; null without a value. */
export type ShownValues = (number | null)[]

interface Row {
  readonly series: TimeSeries
  lastTotal: number
}

/** Series by name. A name has a series from its first value on; the names must be few. */
export class SeriesTable {
  readonly #combine: Combine
  readonly #compact: boolean
  readonly #rows = new Map<string, Row>()

  /** @param compact Halves the memory; numbers above 16 million lose digits. @default false */
  constructor(combine: Combine, compact = false) {
    this.#combine = combine
    this.#compact = compact
  }

  /** Sets the value of a step. */
  set(name: string, step: number, value: number): void {
    this.#row(name, step).series.set(step, value)
  }

  /** Sets the value of a step to the growth of a total since the previous step. */
  setTotal(name: string, step: number, total: number): void {
    const row = this.#row(name, step)
    row.series.set(step, Math.max(0, total - row.lastTotal))
    row.lastTotal = total
  }

  values(name: string, range: SeriesRange): ShownValues {
    return shownValues(this.exactValues(name, range))
  }

  /** Returns unrounded values; NaN without a value. */
  exactValues(name: string, range: SeriesRange): readonly number[] {
    return this.#rows.get(name)?.series.values(range) ?? missing(range)
  }

  /** Returns the values of every series by name. */
  all(range: SeriesRange): Record<string, ShownValues> {
    return Object.fromEntries(Array.from(this.#rows.keys(), (name) => [name, this.values(name, range)]))
  }

  #row(name: string, step: number): Row {
    const known = this.#rows.get(name)
    if (known !== undefined) return known
    const row = { series: new TimeSeries(this.#combine, step, this.#compact), lastTotal: 0 }
    this.#rows.set(name, row)
    return row
  }
}

function missing({ from, to }: SeriesRange): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, () => Number.NaN)
}

/** Rounds values to six digits, unless they are whole. */
export function shownValues(values: readonly number[]): ShownValues {
  return values.map((value) => {
    if (Number.isNaN(value)) return null
    return Number.isInteger(value) ? value : Number(value.toPrecision(6))
  })
}

/** The steps of the last hour: 720 of 5 s. */
export const FINE_STEPS = 720
/** The minutes of the last day. */
export const MINUTES = 1_440
/** The steps of one minute. */
export const STEPS_PER_MINUTE = 12

/** The value of a minute: the sum of its steps, the last one, or the highest. */
type Combine = 'sum' | 'last' | 'max'

/** The part of a series that is read: steps for an hour, minutes for a day. */
export interface SeriesRange {
  readonly resolution: 'step' | 'minute'
  /** The numbers of the first step or minute, and of the one after the last. */
  readonly from: number
  readonly to: number
}

/**
 * The values of one number for an hour in steps, and for a day in minutes. Its memory is fixed from
 * the start. Steps are numbered since the epoch; a step without a value is NaN.
 */
export class TimeSeries {
  readonly #combine: Combine
  readonly #steps: Float64Array | Float32Array
  readonly #minutes: Float64Array | Float32Array
  readonly #firstStep: number
  #lastStep: number
  #lastMinute = -1

  /**
   * @param firstStep The number of the first step that has a value
   * @param compact Halves the memory; numbers above 16 million lose digits. @default false
   */
  constructor(combine: Combine, firstStep: number, compact = false) {
    const Values = compact ? Float32Array : Float64Array
    this.#combine = combine
    this.#steps = new Values(FINE_STEPS)
    this.#minutes = new Values(MINUTES)
    this.#firstStep = firstStep
    this.#lastStep = firstStep - 1
  }

  /** Sets the value of a step that is later than the previous one. Steps in between have no value. */
  set(step: number, value: number): void {
    const missed = Math.min(step - this.#lastStep, FINE_STEPS)
    for (let back = missed - 1; back > 0; back--) this.#steps[(step - back) % FINE_STEPS] = Number.NaN
    this.#steps[step % FINE_STEPS] = value
    this.#lastStep = step
    this.#setMinute(Math.floor(step / STEPS_PER_MINUTE), value)
  }

  #setMinute(minute: number, value: number): void {
    const at = minute % MINUTES
    if (minute === this.#lastMinute) {
      this.#minutes[at] = combined(this.#combine, this.#minutes[at] ?? Number.NaN, value)
      return
    }
    const missed = this.#lastMinute === -1 ? 1 : Math.min(minute - this.#lastMinute, MINUTES)
    for (let back = missed - 1; back > 0; back--) this.#minutes[(minute - back) % MINUTES] = Number.NaN
    this.#minutes[at] = value
    this.#lastMinute = minute
  }

  /** Returns the values of a range, unrounded; NaN without a value. */
  values({ resolution, from, to }: SeriesRange): number[] {
    const fine = resolution === 'step'
    const ring = fine ? this.#steps : this.#minutes
    const first = fine ? this.#firstStep : Math.floor(this.#firstStep / STEPS_PER_MINUTE)
    const last = fine ? this.#lastStep : this.#lastMinute
    const values: number[] = []
    for (let at = from; at < to; at++) {
      const known = at >= first && at <= last && at > last - ring.length
      values.push(known ? (ring[at % ring.length] ?? Number.NaN) : Number.NaN)
    }
    return values
  }
}

function combined(combine: Combine, before: number, value: number): number {
  if (Number.isNaN(before)) return value
  if (Number.isNaN(value)) return before
  if (combine === 'sum') return before + value
  return combine === 'max' ? Math.max(before, value) : value
}
