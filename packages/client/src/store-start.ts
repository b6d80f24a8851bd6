import type { Duration } from './duration.ts'
import { wholeSeconds } from './duration.ts'
import { argumentError } from './errors.ts'

/** The first event of a reader: the first or last stored one, the next new one, a sequence, a time, or a time ago. */
export type StoreStart =
  | 'first'
  | 'last'
  | 'new'
  | { readonly sequence: number }
  | { readonly time: Date }
  | { readonly ago: Duration }

/** Returns the lowest sequence that a start may have. */
export function sequenceOf(from: StoreStart): number {
  return typeof from === 'object' && 'sequence' in from ? from.sequence : 1
}

/** Returns the query of a start: the numbers are those of `events_store_type`. */
export function startQuery(from: StoreStart): {
  readonly events_store_type: number
  readonly events_store_value?: string
} {
  if (from === 'new') return { events_store_type: 1 }
  if (from === 'first') return { events_store_type: 2 }
  if (from === 'last') return { events_store_type: 3 }
  if ('sequence' in from) {
    if (!Number.isSafeInteger(from.sequence) || from.sequence < 1) {
      throw argumentError('from.sequence', from.sequence, 'a whole number of at least 1')
    }
    return { events_store_type: 4, events_store_value: String(from.sequence) }
  }
  if ('time' in from) return { events_store_type: 5, events_store_value: from.time.toISOString() }
  return { events_store_type: 6, events_store_value: String(wholeSeconds('from.ago', from.ago, 0, 1_000_000_000_000)) }
}
