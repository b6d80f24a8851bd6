import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'

import type { EventSourceMessage } from 'eventsource-parser'
import { createParser } from 'eventsource-parser'

export type { EventSourceMessage }

interface EventStreamOptions {
  readonly method?: string
  /** JSON text. */
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The time-out of the answer's head, in milliseconds. */
  readonly headMs: number
  readonly onEvent: (event: EventSourceMessage) => void
  /** Closes the stream. */
  readonly signal?: AbortSignal
}

/** The answer was not a stream. */
export class NoStream extends Error {
  override readonly name = 'NoStream'
  readonly status: number
  readonly body: string

  constructor(status: number, body: string) {
    super(`no stream: HTTP ${status} ${body.slice(0, 500)}`)
    this.status = status
    this.body = body
  }
}

/** A stream of server-sent events on a separate connection. */
export class EventStream {
  /** Resolves when the stream has ended, or broke. */
  readonly closed: Promise<void>
  readonly #response: IncomingMessage

  private constructor(response: IncomingMessage, onEvent: EventStreamOptions['onEvent']) {
    this.#response = response
    const parser = createParser({ onEvent })
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => parser.feed(chunk))
    response.on('error', () => {})
    this.closed = new Promise((resolve) => response.once('close', resolve))
  }

  /** Resolves with the head of the answer. Rejects with {@link NoStream}, or when the connection breaks or the head is late. */
  static open(url: string, { method = 'GET', body, headers, headMs, onEvent, signal }: EventStreamOptions) {
    return new Promise<EventStream>((resolve, reject) => {
      const outgoing = request(url, {
        method,
        agent: false,
        ...(signal && { signal }),
        headers: {
          accept: 'text/event-stream',
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      })
      const late = setTimeout(() => outgoing.destroy(new Error('no answer in time')), headMs)
      outgoing.once('response', (response) => {
        if (response.headers['content-type']?.startsWith('text/event-stream') === true) {
          clearTimeout(late)
          resolve(new EventStream(response, onEvent))
          return
        }
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.once('end', () => {
          clearTimeout(late)
          reject(new NoStream(response.statusCode ?? 0, text))
        })
      })
      outgoing.on('error', (error) => {
        clearTimeout(late)
        reject(error)
      })
      outgoing.end(body)
    })
  }

  close(): void {
    this.#response.destroy()
  }
}
