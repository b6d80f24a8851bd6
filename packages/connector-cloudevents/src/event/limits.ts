import type { ExceededLimit } from '@signalbox/http-kit'
import { MAX_JSON_DEPTH, MAX_JSON_KEYS, MAX_JSON_PARTS } from '@signalbox/http-kit'

import { invalidEvent } from './invalid-event.ts'

/** The most attributes and extensions of one event. */
export const MAX_ATTRIBUTES = 256

/** The most events in one batch. */
export const MAX_BATCH_EVENTS = 1_000

/** Limits of the JSON text of a body; for a batch, of the whole batch. */
export const BODY_LIMITS = { maxDepth: MAX_JSON_DEPTH, maxKeys: MAX_JSON_KEYS, maxParts: MAX_JSON_PARTS }

/** @throws CeError EVENT_INVALID for a limit that a body exceeds */
export function assertWithinLimits(exceeded: ExceededLimit | undefined): void {
  if (exceeded === 'depth') throw invalidEvent(`the body is nested deeper than ${MAX_JSON_DEPTH} levels`)
  if (exceeded === 'keys') throw invalidEvent(`the body has more than ${MAX_JSON_KEYS} keys`)
  if (exceeded === 'parts') {
    throw invalidEvent(
      `the body has more than ${MAX_JSON_PARTS} strings, objects and arrays; send such data in binary mode, or as data_base64`,
    )
  }
}

export function tooManyAttributes(): Error {
  return invalidEvent(`an event has more than ${MAX_ATTRIBUTES} attributes`)
}
