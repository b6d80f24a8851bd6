import { readEvent, readPlainAnswer, readTextEvent } from '../dialects/read-event.ts'
import type { Reading } from '../dialects/reading.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { StreamFailure } from '../events.ts'
import { clientEventText, failureText } from '../events.ts'
import type { ServerSentEvent } from '../reader/event-reader.ts'
import type { ClientText, EventConverter } from './event-converter.ts'

/**
 * Converts an agent's events into the client's, with exactly one terminal event, the last. Do not
 * call it again after a text with an `end`.
 */
export class AgentEvents implements EventConverter {
  readonly #streamId: string
  /** The terminal event to send if the response ends now. */
  #conclusion: { readonly type: 'done' | 'error'; readonly payload: string } | undefined

  constructor(streamId: string) {
    this.#streamId = streamId
  }

  next(event: ServerSentEvent): ClientText {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    return this.#clientText(reading ?? readTextEvent(event))
  }

  cutOff(event: ServerSentEvent): ClientText | undefined {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    return reading === undefined ? undefined : this.#clientText(reading)
  }

  plainAnswer(body: string): ClientText {
    const reading = readPlainAnswer(body)
    return reading === undefined ? this.failure(STREAM_FAILURES.INVALID_RESPONSE) : this.#clientText(reading)
  }

  /** Returns the terminal event for a response that had none. */
  ended(): ClientText {
    return this.#conclusion === undefined
      ? this.failure(STREAM_FAILURES.NO_TERMINAL_EVENT)
      : this.#clientText(this.#conclusion)
  }

  /**
   * Returns the terminal event for a response that broke off: earlier events may not have been the
   * last.
   */
  broken(): ClientText {
    return this.failure(STREAM_FAILURES.NO_TERMINAL_EVENT)
  }

  failure(failure: StreamFailure): ClientText {
    return { text: failureText(this.#streamId, failure), end: failure.code }
  }

  #clientText({ type, typeText, payload, ifEnded }: Reading): ClientText {
    if (ifEnded === 'open') this.#conclusion = undefined
    else if (ifEnded !== undefined) this.#conclusion = { type: ifEnded, payload }
    const text = clientEventText(this.#streamId, type, payload, typeText)
    return { text, end: type === 'done' || type === 'error' ? type : undefined }
  }
}
