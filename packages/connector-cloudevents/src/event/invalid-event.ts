import { CeError } from '../errors.ts'

/** Returns the error for an invalid CloudEvent. */
export function invalidEvent(reason: string, attribute?: string): CeError {
  return new CeError('EVENT_INVALID', `invalid CloudEvent: ${reason}`, attribute === undefined ? {} : { attribute })
}
