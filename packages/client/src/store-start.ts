import type { Duration } from './duration.ts'
import { milliseconds, wholeSeconds } from './duration.ts'
import { argumentError } from './errors.ts'

/** The first event of a reader: the first or last stored one, the next new one, a sequence, a time, or a time ago. */
export type StoreStart =
  | 'first'
  | 'last'
  | 'new'
  | { readonly sequence: number }
  | { readonly time: Date }
  | { readonly ago: Duration }

/** The position of a stored event. */
export interface StorePosition {
  readonly sequence: number
  /** The time at which the server stored it, in ms since 1970. */
  readonly time: number
}

/** Returns the start with a time ago as the time that it means now. */
export function fixedStart(from: StoreStart): StoreStart {
  if (typeof from !== 'object' || !('ago' in from)) return from
  return { time: new Date(Date.now() - milliseconds('from.ago', from.ago)) }
}

/** Returns `true` if no event up to the last one is at or after the start. */
export function isAfter(from: StoreStart, last: StorePosition): boolean {
  if (last.sequence === 0 || from === 'new') return true
  if (typeof from !== 'object') return false
  if ('sequence' in from) return from.sequence > last.sequence
  return 'time' in from && from.time.getTime() > last.time
}

/** Returns the query of a start: the numbers are those of `events_store_type`. */
export function startQuery(from: StoreStart): {
  readonly events_store_type: number
  readonly events_store_value?: string | undefined
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
