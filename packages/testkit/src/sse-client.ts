import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:http'

import type { EventSourceMessage } from 'eventsource-parser'
import { createParser } from 'eventsource-parser'
import { onTestFinished } from 'vitest'

/** JSON of any shape: tests look into what they expect, and fail where it is not there. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Loose = any

/** A server-sent event. */
export class SseMessage {
  readonly event: string
  readonly id: string | undefined
  readonly data: string

  constructor({ event = 'message', id, data }: EventSourceMessage) {
    this.event = event
    this.id = id
    this.data = data
  }

  /** The data as JSON. */
  get json(): Loose {
    return JSON.parse(this.data)
  }
}

interface SseRequest {
  readonly method?: string
  readonly body?: string
}

/** A client of server-sent events on its own connection, which closes with the running test. */
export class SseClient {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** All events so far. */
  readonly seen: SseMessage[] = []
  /** All comments so far. */
  readonly comments: string[] = []
  /** Resolves when the stream has ended or is broken. */
  readonly ended: Promise<void>
  readonly #response: IncomingMessage
  #taken = 0
  #over = false
  #changed = Promise.withResolvers<void>()

  private constructor(response: IncomingMessage) {
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    const parser = createParser({
      onEvent: (message) => this.seen.push(new SseMessage(message)),
      onComment: (comment) => this.comments.push(comment.trimStart()),
    })
    response.on('error', () => {})
    response.setEncoding('utf8').on('data', (text: string) => {
      parser.feed(text)
      this.#wake()
    })
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        this.#over = true
        this.#wake()
        resolve()
      })
    })
  }

  /** Resolves with the head of the answer. Rejects with its text if the status is not 200. */
  static open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
    { method = 'GET', body = '' }: SseRequest = {},
  ): Promise<SseClient> {
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers: { accept: 'text/event-stream', ...headers }, agent: false })
      outgoing.once('response', (response) => {
        if (response.statusCode === 200) {
          resolve(new SseClient(response))
          return
        }
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.once('end', () => reject(new Error(`${response.statusCode} ${text}`)))
      })
      outgoing.on('error', reject)
      outgoing.end(body)
      onTestFinished(() => void outgoing.destroy())
    })
  }

  /** Resolves with the next event that was not taken yet. Rejects if the stream ends before it. */
  async next(): Promise<SseMessage> {
    const at = this.#taken++
    for (;;) {
      const message = this.seen[at]
      if (message !== undefined) return message
      if (this.#over) throw new Error(`the stream ended after ${this.seen.length} events`)
      await this.#changed.promise
    }
  }

  async nextJson(): Promise<Loose> {
    return (await this.next()).json
  }

  /** The events that were not taken yet. */
  get waiting(): readonly SseMessage[] {
    return this.seen.slice(this.#taken)
  }

  /** Stops reading, so that the sender's socket fills. */
  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  /** Breaks the connection. */
  close(): void {
    this.#response.destroy()
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}
