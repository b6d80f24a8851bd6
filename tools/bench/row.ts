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
  /** The time of unmeasured rounds before the first one of {@link compare}. @default 0 */
  readonly settleMs: number
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
  /** `true` for a row that runs only if `--only` names it. @default false */
  readonly onRequest?: boolean
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

/** Measures an alternative once and returns its measurements by name. */
export type Run<Figures> = () => Promise<Figures>

/** The measurements of one alternative, one entry a round. */
type Rounds<Figures> = readonly Figures[]

/**
 * Runs the alternatives in turn, round after round, in alternating order, so that other load on the machine affects all
 * of them alike. Returns each one's measurements.
 */
export async function interleave<Figures>(
  rounds: number,
  alternatives: readonly Run<Figures>[],
  settleMs = 0,
): Promise<readonly Rounds<Figures>[]> {
  const results: Figures[][] = alternatives.map(() => [])
  const order = [...alternatives.entries()]
  for (const begin = performance.now(); performance.now() < begin + settleMs;) for (const [, run] of order) await run()
  for (let round = 0; round < rounds; round++) {
    for (const [index, run] of round % 2 === 0 ? order : order.toReversed()) results[index]?.push(await run())
  }
  return results
}

interface Comparison<Figures> {
  /** Opens the alternatives that every subject is compared with. @default none */
  readonly yardsticks?: (stack: AsyncDisposableStack) => Promise<readonly Run<Figures>[]>
  /** Opens the alternatives of a subject. The stack is disposed of after the last round. */
  readonly open: (subject: Subject, stack: AsyncDisposableStack) => Promise<readonly Run<Figures>[]>
  /** Returns the measures of a subject, from the rounds of its alternatives and of the yardsticks. */
  readonly judge: (
    own: readonly Rounds<Figures>[],
    yardsticks: readonly Rounds<Figures>[],
  ) => readonly Omit<Measure, 'subject'>[]
}

/** Measures the alternatives of all subjects, interleaved with each other and with the yardsticks. */
export async function compare<Figures>(
  context: BenchContext,
  { yardsticks, open, judge }: Comparison<Figures>,
): Promise<readonly Measure[]> {
  await using stack = new AsyncDisposableStack()
  const common = (await yardsticks?.(stack)) ?? []
  const own: (readonly Run<Figures>[])[] = []
  for (const subject of context.subjects) own.push(await open(subject, stack))
  const measured = [...(await interleave(context.rounds, [...common, ...own.flat()], context.settleMs))]
  const beside = measured.splice(0, common.length)
  const measures: Measure[] = []
  for (const [i, { label: subject }] of context.subjects.entries()) {
    for (const measure of judge(measured.splice(0, own[i]?.length), beside)) measures.push({ ...measure, subject })
  }
  return measures
}

/** Measures one subject after the other. */
export async function inSequence(
  context: BenchContext,
  measure: (subject: Subject, stack: AsyncDisposableStack) => Promise<readonly Omit<Measure, 'subject'>[]>,
): Promise<readonly Measure[]> {
  const measures: Measure[] = []
  for (const subject of context.subjects) {
    await using stack = new AsyncDisposableStack()
    for (const one of await measure(subject, stack)) measures.push({ ...one, subject: subject.label })
  }
  return measures
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
