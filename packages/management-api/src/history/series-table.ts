import type { Combine, SeriesRange } from './time-series.ts'
import { TimeSeries } from './time-series.ts'

/** The values of a series as they are shown; null without a value. */
export type ShownValues = (number | null)[]

interface Row {
  readonly series: TimeSeries
  lastTotal: number
}

/** Series by name. A name has a series from its first value on; the names must be few. */
export class SeriesTable {
  readonly #combine: Combine
  readonly #rows = new Map<string, Row>()

  constructor(combine: Combine) {
    this.#combine = combine
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
    const row = this.#rows.get(name)
    return row === undefined ? missingValues(range) : shownValues(row.series.values(range))
  }

  /** Returns the values of every series by name. */
  all(range: SeriesRange): Record<string, ShownValues> {
    return Object.fromEntries(Array.from(this.#rows.keys(), (name) => [name, this.values(name, range)]))
  }

  #row(name: string, step: number): Row {
    const known = this.#rows.get(name)
    if (known !== undefined) return known
    const row = { series: new TimeSeries(this.#combine, step), lastTotal: 0 }
    this.#rows.set(name, row)
    return row
  }
}

/** Rounds values to six digits, unless they are whole. */
export function shownValues(values: readonly number[]): ShownValues {
  return values.map((value) => {
    if (Number.isNaN(value)) return null
    return Number.isInteger(value) ? value : Number(value.toPrecision(6))
  })
}

export function missingValues({ from, to }: SeriesRange): ShownValues {
  return Array.from({ length: Math.max(0, to - from) }, () => null)
}
