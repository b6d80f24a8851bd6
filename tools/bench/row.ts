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
