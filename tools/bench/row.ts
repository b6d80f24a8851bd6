import { median } from '@signalbox/testkit/figures'

import type { Subject } from './subject.ts'

/** The value that a goal of the performance budget requires. */
export interface Goal {
  readonly must: number
  readonly aim: number
  /** True if larger values are better. */
  readonly better: 'more' | 'less'
  /** The unit: `×` for a ratio. */
  readonly unit: string
}

/** One measured value of a row, for one subject. */
export interface Measure {
  readonly name: string
  readonly subject: string
  /** The goal. `undefined` for a value that is shown but has no place in the budget. */
  readonly goal: Goal | undefined
  /** The unit of a value without a goal. */
  readonly unit?: string
  /** One value a round; the result is their median. */
  readonly samples: readonly number[]
  /** The components of the value: medians by label, with the unit in the label. */
  readonly details: Readonly<Record<string, number>>
}

export interface BenchContext {
  /** The working tree, then the commit to compare it with, if any. */
  readonly subjects: readonly Subject[]
  readonly rounds: number
  /** Duration of the load on one alternative in one round. */
  readonly roundMs: number
  readonly warmUpMs: number
  /** True for short and small runs, which check only that the row works. */
  readonly quick: boolean
  /** The core of the measured processes; `undefined` if processes cannot be pinned. */
  readonly core: number | undefined
  /** A folder for stores and raw logs, on the disk to be measured. */
  readonly folder: string
  /** The folder for CPU profiles; `undefined` if none are wanted. */
  readonly profiles: string | undefined
  /** Reports progress to the user. */
  readonly log: (line: string) => void
}

export interface Row {
  /** The value for `--only`. */
  readonly id: string
  /** The goal in the words of the budget. */
  readonly title: string
  run(context: BenchContext): Promise<readonly Measure[]>
}

/** Returns a goal for which larger values are better. */
export function atLeast(must: number, aim: number, unit = '×'): Goal {
  return { must, aim, unit, better: 'more' }
}

/** Returns a goal for which smaller values are better. */
export function atMost(must: number, aim: number, unit: string): Goal {
  return { must, aim, unit, better: 'less' }
}

/** An alternative that runs once a round and returns its measurements by name. */
export interface Alternative<Figures extends Readonly<Record<string, number>>> {
  readonly label: string
  readonly run: () => Promise<Figures>
}

/**
 * Runs the alternatives in turn, round after round, in alternating order, so that other load on the machine affects all
 * of them alike. Returns each one's measurements, round by round.
 */
export async function interleave<Figures extends Readonly<Record<string, number>>>(
  rounds: number,
  alternatives: readonly Alternative<Figures>[],
): Promise<readonly (readonly Figures[])[]> {
  const results: Figures[][] = alternatives.map(() => [])
  for (let round = 0; round < rounds; round++) {
    const order = [...alternatives.keys()]
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      const figures = await alternatives[index]?.run()
      if (figures !== undefined) results[index]?.push(figures)
    }
  }
  return results
}

/** Returns the medians of each measurement over the rounds, with `prefix` before its name. */
export function medians(prefix: string, rounds: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = Object.keys(rounds[0] ?? {})
  return Object.fromEntries(
    names.map((name) => [`${prefix} ${name}`, median(rounds.map((figures) => figures[name] ?? Number.NaN))]),
  )
}

/** Returns one ratio a round, from measurements of the same round, so that slow rounds of the machine cancel out. */
export function ratios<Figures>(
  above: readonly Figures[],
  below: readonly Figures[],
  figure: (figures: Figures) => number,
): number[] {
  return above.map((figures, round) => {
    const other = below[round]
    if (other === undefined) throw new RangeError(`round ${round} has no counterpart`)
    return figure(figures) / figure(other)
  })
}
