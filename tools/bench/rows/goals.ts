import type { Goal } from '../row.ts'

/** A goal that more is better for. */
export function atLeast(must: number, aim: number, unit = '×'): Goal {
  return { must, aim, unit, better: 'more' }
}

/** A goal that less is better for. */
export function atMost(must: number, aim: number, unit: string): Goal {
  return { must, aim, unit, better: 'less' }
}
