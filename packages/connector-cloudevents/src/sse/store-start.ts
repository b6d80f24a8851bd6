import type { EventsStoreStart } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import { parseTimestamp, timestampRefusal } from '@signalbox/http-kit'

import { CeError, invalidParameters } from '../errors.ts'

/** The start of a subscription to an events store, by `events_store_type`. */
const EVENTS_STORE_TYPES = { new: 1, first: 2, last: 3, sequence: 4, time: 5, delta: 6 } as const

const WHOLE = /^(?:0|[1-9]\d{0,15})$/

/** The longest time back that still makes a valid date, in seconds. */
const MAX_SECONDS = 1_000_000_000_000

/**
 * Returns the start of a subscription from the query. A reconnecting client sends Last-Event-ID, which overrides the
 * query: the subscription continues after that event.
 * @throws CeError PARAMETER_INVALID
 */
export function storeStart(
  type: number = EVENTS_STORE_TYPES.new,
  value: string | undefined,
  lastEventId: string | undefined,
): EventsStoreStart {
  const start = startOf(type, value)
  if (lastEventId === undefined) return start
  const sequence = wholeNumber(lastEventId)
  if (sequence === undefined || sequence >= Number.MAX_SAFE_INTEGER) {
    throw new CeError(
      'PARAMETER_INVALID',
      `invalid header Last-Event-ID: ${shownText(lastEventId)}; it must be the id of an event of this store, a whole number from 0 to ${Number.MAX_SAFE_INTEGER - 1}`,
    )
  }
  return { from: 'sequence', sequence: sequence + 1 }
}

function startOf(type: number, value: string | undefined): EventsStoreStart {
  const allowed = allowedValue(type, value)
  if (allowed === undefined) {
    if (value !== undefined) throw wrongValue(value, 'left out, or events_store_type 4, 5 or 6')
    if (type === EVENTS_STORE_TYPES.first) return { from: 'first' }
    return type === EVENTS_STORE_TYPES.last ? { from: 'last' } : { from: 'new' }
  }
  if (value === undefined) throw wrongValue(undefined, allowed)
  const number = type === EVENTS_STORE_TYPES.time ? parseTimestamp(value) : wholeNumber(value)
  if (number === undefined) throw wrongValue(value, allowed)
  if (type === EVENTS_STORE_TYPES.time) return { from: 'time', timestamp: number }
  if (type === EVENTS_STORE_TYPES.sequence) {
    if (number < 1) throw wrongValue(value, allowed)
    return { from: 'sequence', sequence: number }
  }
  if (number > MAX_SECONDS) throw wrongValue(value, allowed)
  return { from: 'delta', milliseconds: number * 1000 }
}

function allowedValue(type: number, value = ''): string | undefined {
  switch (type) {
    case EVENTS_STORE_TYPES.sequence:
      return `a sequence with events_store_type 4: a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
    case EVENTS_STORE_TYPES.time:
      return `with events_store_type 5 ${timestampRefusal(value)}`
    case EVENTS_STORE_TYPES.delta:
      return `seconds back with events_store_type 6: a whole number from 0 to ${MAX_SECONDS}`
    default:
      return undefined
  }
}

function wholeNumber(text: string): number | undefined {
  const number = WHOLE.test(text) ? Number(text) : undefined
  return number !== undefined && Number.isSafeInteger(number) ? number : undefined
}

function wrongValue(given: string | undefined, allowed: string): CeError {
  const parameter = 'events_store_value'
  return invalidParameters([
    given === undefined ? { parameter, allowed } : { parameter, given: shownText(given), allowed },
  ])
}
