import type { EndMark } from '../channel/frame.ts'
import type { ServerSentEvent } from '../reader/event-reader.ts'
import type { StreamFailure } from '../events.ts'

/**
 * Text for the client, with one character for each byte. The last text of a stream has an `end`.
 */
export interface ClientText {
  readonly text: string
  readonly end: EndMark | undefined
}

/**
 * Converts an agent's events into the client's. Do not call it again after a text with an `end`.
 */
export interface EventConverter {
  /** Converts an event; undefined if there is nothing to send for it. */
  next(event: ServerSentEvent): ClientText | undefined
  /**
   * Converts an event that the response ended in, without its blank line; undefined if it is
   * incomplete.
   */
  cutOff(event: ServerSentEvent): ClientText | undefined
  /**
   * Returns an event that was held back for too long while the agent is silent. Called from time to
   * time. @default none
   */
  quiet?(now: number): ClientText | undefined
  /** Converts the body of an answer that was no event stream. */
  plainAnswer(body: string): ClientText
  /** Returns the last text for a complete response without a terminal event. */
  ended(): ClientText
  /** Returns the last text for a response that broke off. */
  broken(): ClientText
  /** Returns the last text for an error of Signalbox. */
  failure(failure: StreamFailure): ClientText
}
