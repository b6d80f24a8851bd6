import type { ExceededLimit, ScanLimits } from '@signalbox/http-kit'
import { limitText, scanLimits } from '@signalbox/http-kit'

import { invalidEvent } from './invalid-event.ts'

/** The most attributes and extensions of one event. */
export const MAX_ATTRIBUTES = 256

/** The most events in one batch. */
export const MAX_BATCH_EVENTS = 1_000

/** The longest attribute, in characters; together they should not exceed 64 KiB (CloudEvents 5.1). */
export const MAX_ATTRIBUTE_LENGTH = 8_192

/** The longest `time`, in characters. */
export const MAX_TIME_LENGTH = 64

/** Limits of the JSON text of a batch. */
export const BATCH_LIMITS = scanLimits({})

/** Limits of the JSON text of one event, whose data is free. */
export const EVENT_LIMITS = scanLimits({ freeForm: ['data'] })

/** @throws CeError EVENT_INVALID for a limit that a body exceeds */
export function assertWithinLimits(exceeded: ExceededLimit | undefined, limits: ScanLimits): void {
  if (exceeded === undefined) return
  const remedy =
    exceeded === 'parts' || exceeded === 'commas' ? '; send such data in binary mode, or as data_base64' : ''
  throw invalidEvent(`the body is ${limitText(exceeded, limits)}${remedy}`)
}

export function tooManyAttributes(): Error {
  return invalidEvent(`an event has more than ${MAX_ATTRIBUTES} attributes`)
}
