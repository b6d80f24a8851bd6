import type { Buffer } from 'node:buffer'

import { createParser } from 'eventsource-parser'

/** One server-sent event of an agent. `data` holds a character for each byte, as latin1 does. */
export interface ServerSentEvent {
  /** The `event:` line; undefined where there is none. */
  readonly event: string | undefined
  readonly data: string
}

/** Room for a field's name before its value, which the parser counts as well. */
const FIELD_NAME_CHARS = 16

/**
 * Reads server-sent events from the bytes of a response, whatever the chunks and line ends. Bytes are taken for latin1
 * characters: the framing is ASCII, so nothing is misread, no character is ever split between two chunks, and payloads
 * leave as the bytes that they came as.
 */
export class EventReader {
  readonly #feed: (chunk: string) => void
  readonly #onEvent: (event: ServerSentEvent) => void
  #events: ServerSentEvent[] = []
  #tooLarge = false

  /** @param maxEventBytes The most data that one event may have. */
  constructor(maxEventBytes: number, onEvent: (event: ServerSentEvent) => void) {
    this.#onEvent = onEvent
    const parser = createParser({
      maxBufferSize: maxEventBytes + FIELD_NAME_CHARS,
      onEvent: ({ event, data }) => {
        if (data.length > maxEventBytes) this.#tooLarge = true
        if (!this.#tooLarge) this.#events.push({ event, data })
      },
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.#tooLarge = true
      },
    })
    this.#feed = (chunk) => parser.feed(chunk)
  }

  /** False once an event was larger than allowed: nothing more can be read then. */
  feed(chunk: Buffer): boolean {
    if (!this.#tooLarge) this.#parse(chunk.toString('latin1'))
    return !this.#tooLarge
  }

  /** The response has ended, not broken off: a last event that no blank line followed is read now. */
  end(): void {
    if (!this.#tooLarge) this.#parse('\n\n')
  }

  /**
   * The parser makes an Error of every line that it does not know. Without stacks they cost a tenth: 64 KiB of such lines
   * held the event loop for 100 ms. Events are handed on afterwards, so that errors of their reader have a stack.
   */
  #parse(chunk: string): void {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      this.#feed(chunk)
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
    const events = this.#events
    if (events.length === 0) return
    this.#events = []
    for (const event of events) this.#onEvent(event)
  }
}
