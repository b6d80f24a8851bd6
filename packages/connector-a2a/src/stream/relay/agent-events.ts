import type { EndMark } from '../channel/frame.ts'
import { readEvent, readPlainAnswer, readTextEvent } from '../dialects/read-event.ts'
import type { Reading } from '../dialects/reading.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { StreamFailure } from '../events.ts'
import { clientEventText, failureText } from '../events.ts'
import type { ServerSentEvent } from '../reader/event-reader.ts'

/** Text for the client; the last of a stream comes with how it ended. */
export interface ClientText {
  readonly text: string
  readonly end: EndMark | undefined
}

/**
 * The agent's events as the client gets them, with exactly one terminal event, the last (A8, A9). After one with an `end`
 * nothing more is to be asked.
 */
export class AgentEvents {
  readonly #streamId: string
  /** What the end of the response would mean now. */
  #conclusion: { readonly type: 'done' | 'error'; readonly payload: string } | undefined

  constructor(streamId: string) {
    this.#streamId = streamId
  }

  next(event: ServerSentEvent): ClientText {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    return this.#clientText(reading ?? readTextEvent(event))
  }

  /** An event that the response ended in, without its blank line; undefined when it was cut. */
  cutOff(event: ServerSentEvent): ClientText | undefined {
    const reading = readEvent(event)
    if (reading === 'invalid') return this.failure(STREAM_FAILURES.INVALID_RESPONSE)
    return reading === undefined ? undefined : this.#clientText(reading)
  }

  /** The whole of an answer that was no event stream. */
  plainAnswer(body: string): ClientText {
    const reading = readPlainAnswer(body)
    return reading === undefined ? this.failure(STREAM_FAILURES.INVALID_RESPONSE) : this.#clientText(reading)
  }

  /** The terminal event of a response that had none. */
  ended(): ClientText {
    return this.#conclusion === undefined
      ? this.failure(STREAM_FAILURES.NO_TERMINAL_EVENT)
      : this.#clientText(this.#conclusion)
  }

  /** The terminal event of a response that broke off. What came before may not have been the agent's last word. */
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
