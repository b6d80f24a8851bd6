import { CeError } from '../errors.ts'

/** The error for something that is not a valid CloudEvent. */
export function invalidEvent(reason: string, attribute?: string): CeError {
  return new CeError('EVENT_INVALID', `invalid CloudEvent: ${reason}`, attribute === undefined ? {} : { attribute })
}
