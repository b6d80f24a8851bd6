import type { Goal } from '../row.ts'

/** Returns a goal for which larger values are better. */
export function atLeast(must: number, aim: number, unit = '×'): Goal {
  return { must, aim, unit, better: 'more' }
}

/** Returns a goal for which smaller values are better. */
export function atMost(must: number, aim: number, unit: string): Goal {
  return { must, aim, unit, better: 'less' }
}
