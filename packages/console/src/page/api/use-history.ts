import type { GetData, GetQuery } from './client.ts'
import { get } from './client.ts'
import type { Loaded } from './use-data.ts'
import { useData } from './use-data.ts'

export type HistoryRange = 'minute' | 'hour' | 'day'

export type HistoryData = GetData<'/api/history'>

export const RANGES: readonly (readonly [HistoryRange, string])[] = [
  ['minute', '1 min'],
  ['hour', '1 h'],
  ['day', '1 d'],
]

/** The interval of requests, in ms: about one plotted pixel. */
const EVERY_MS: Readonly<Record<HistoryRange, number>> = { minute: 5_000, hour: 10_000, day: 60_000 }

const RANGE_MS: Readonly<Record<HistoryRange, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** The shortest time axis of a node that has just started, in ms. */
const MIN_SPAN_MS = 300_000

/** Returns the length of the time axis, in ms: the range, or the time since the start of the node if that is shorter. */
export function spanOf(range: HistoryRange, { start, end }: HistoryData): number {
  const known = Date.parse(end) - Date.parse(start)
  return Math.min(RANGE_MS[range], Math.max(MIN_SPAN_MS, known))
}

/** The last minute and one more step. */
const MINUTE_MS = 65_000

/** Returns the range that a filter names; an hour for any other text. */
export function rangeOf(text: string | undefined): HistoryRange {
  return text === 'minute' || text === 'day' ? text : 'hour'
}

/** Reads the history of the node for plots. */
export function useHistory(
  range: HistoryRange,
  query: Omit<GetQuery<'/api/history'>, 'range' | 'after'>,
): Loaded<HistoryData> {
  return useData(
    `history ${range} ${JSON.stringify(query)}`,
    (signal) =>
      get(
        '/api/history',
        {
          ...query,
          range: range === 'day' ? 'day' : 'hour',
          after: range === 'minute' ? new Date(Date.now() - MINUTE_MS).toISOString() : undefined,
        },
        signal,
      ),
    EVERY_MS[range],
  )
}

/** Returns the beginning of each step, in ms since the epoch. */
export function timesOf({ start, step_seconds: step, steps }: HistoryData): readonly number[] {
  const first = Date.parse(start)
  return Array.from({ length: steps }, (_, index) => first + index * step * 1_000)
}

type Values = readonly (number | null)[]

/** Adds lists of values step by step; null if no list has a value. */
export function sumOf(lists: readonly Values[]): Values {
  const [first = []] = lists
  return first.map((_, index) => {
    const values = lists.map((list) => list[index]).filter((value) => typeof value === 'number')
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0)
  })
}

/** Divides the values of each step by its length. */
export function perSecond(values: Values, { step_seconds: step }: HistoryData): Values {
  return values.map((value) => (value === null ? null : value / step))
}

/** Returns the sum of all steps. */
export function total(values: Values): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

/** Returns the last value; 0 if there is none. */
export function last(values: Values): number {
  return values.findLast((value) => value !== null) ?? 0
}
