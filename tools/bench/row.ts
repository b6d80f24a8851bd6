import type { Subject } from './subject.ts'

/** What a goal of the performance budget asks for. */
export interface Goal {
  readonly must: number
  readonly aim: number
  /** Whether more or less is better. */
  readonly better: 'more' | 'less'
  /** `×` for a ratio. */
  readonly unit: string
}

/** One measured figure of a row, for one subject. */
export interface Measure {
  readonly name: string
  readonly subject: string
  /** Undefined for what is shown, and has no place in the budget. */
  readonly goal: Goal | undefined
  /** Of a figure without a goal. */
  readonly unit?: string
  /** One value a round; the figure is their median. */
  readonly samples: readonly number[]
  /** What the figure is made of: medians by label, with the unit in the label. */
  readonly details: Readonly<Record<string, number>>
}

export interface BenchContext {
  /** The working tree, then the commit to compare it with, if any. */
  readonly subjects: readonly Subject[]
  readonly rounds: number
  /** How long one alternative is loaded in one round. */
  readonly roundMs: number
  readonly warmUpMs: number
  /** Short and small: to see that it works, not what it costs. */
  readonly quick: boolean
  /** The core for what is measured; undefined where processes cannot be pinned. */
  readonly core: number | undefined
  /** A folder for stores and raw logs, on the disk to be measured. */
  readonly folder: string
  /** Where CPU profiles go; undefined when none are wanted. */
  readonly profiles: string | undefined
  /** Tells a person how far it is. */
  readonly log: (line: string) => void
}

export interface Row {
  /** What `--only` takes. */
  readonly id: string
  /** The goal in the words of the budget. */
  readonly title: string
  run(context: BenchContext): Promise<readonly Measure[]>
}
