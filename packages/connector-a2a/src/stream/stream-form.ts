import type { StreamFailure } from './events.ts'
import { failureText } from './events.ts'

/** The last event of a stream that Signalbox ends, and its code. */
export interface FailureEvent {
  readonly text: string
  readonly code: number
}

/** Writes the errors with which Signalbox ends a stream, in the form of the stream's events. */
export interface StreamForm {
  failure(failure: StreamFailure): FailureEvent
}

/** Returns the form of the gateway's own events. */
export function gatewayForm(streamId: string): StreamForm {
  return { failure: (failure) => ({ text: failureText(streamId, failure), code: failure.code }) }
}
