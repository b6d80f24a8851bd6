import type { Buffer } from 'node:buffer'

import { createParser } from 'eventsource-parser'

/** One server-sent event of an agent. `data` holds one character for each byte, as latin1 does. */
export interface ServerSentEvent {
  /** The `event:` line; undefined if absent. */
  readonly event: string | undefined
  readonly data: string
}

/** The length of a field's name before its value, which the parser counts too. */
const FIELD_NAME_CHARS = 16

/** The memory of a chunk that is kept, in addition to its bytes. */
export const CHUNK_BYTES = 64

/**
 * Reads server-sent events from the bytes of a response, with any chunks and line ends. Bytes are
 * read as latin1 characters: the framing is ASCII, so it is read correctly, no character is split
 * between two chunks, and payloads leave byte for byte.
 */
export class EventReader {
  readonly #feed: (chunk: string) => void
  readonly #onEvent: (event: ServerSentEvent) => void
  #events: ServerSentEvent[] = []
  #tooLarge = false
  #pendingBytes = 0

  /** @param maxEventBytes The most data of one event, in bytes */
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

  /** An estimate of the memory of the event that is incomplete, in bytes. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /**
   * Reads a chunk. Returns false once an event was larger than allowed; the reader then ignores all
   * input.
   */
  feed(chunk: Buffer): boolean {
    // The parser keeps a list entry for each chunk.
    this.#pendingBytes += chunk.length + CHUNK_BYTES
    if (!this.#tooLarge) this.#parse(chunk.toString('latin1'))
    return !this.#tooLarge
  }

  /** Reads a last event that no blank line followed. For a response that ended properly. */
  end(): void {
    if (!this.#tooLarge) this.#parse('\n\n')
  }

  /**
   * The parser creates an Error for every unknown line. Without stacks they cost a tenth: 64 KiB of
   * such lines blocked the event loop for 100 ms. Events are passed on afterwards, so that errors
   * in the listener have a stack.
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
    this.#pendingBytes = 0
    for (const event of events) this.#onEvent(event)
  }
}
