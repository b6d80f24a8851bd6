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
  #tooLarge = false

  /** @param maxEventBytes The most data that one event may have. */
  constructor(maxEventBytes: number, onEvent: (event: ServerSentEvent) => void) {
    const parser = createParser({
      maxBufferSize: maxEventBytes + FIELD_NAME_CHARS,
      onEvent: ({ event, data }) => {
        if (data.length > maxEventBytes) this.#tooLarge = true
        if (!this.#tooLarge) onEvent({ event, data })
      },
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.#tooLarge = true
      },
    })
    this.#feed = (chunk) => parser.feed(chunk)
  }

  /** False once an event was larger than allowed: nothing more can be read then. */
  feed(chunk: Buffer): boolean {
    if (!this.#tooLarge) this.#feed(chunk.toString('latin1'))
    return !this.#tooLarge
  }

  /** The response has ended, not broken off: a last event that no blank line followed is read now. */
  end(): void {
    if (!this.#tooLarge) this.#feed('\n\n')
  }
}
