import type { OutgoingHttpHeaders } from 'node:http'
import { Writable } from 'node:stream'

import type { HttpResponse } from '../http-message.ts'
import type { FetchConnection } from './fetch-connection.ts'

/** The status of an answer whose client disconnected before it, as proxies log it. */
const CLIENT_CLOSED_REQUEST = 499

/** Headers of a connection, which is the host's. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/**
 * The answer to a fetch request as endpoints write responses. A written chunk counts as unread until the host asks for
 * the next one, so a slow reader is noticed as on a socket.
 */
export class FetchResponse extends Writable implements HttpResponse {
  shouldKeepAlive = true
  readonly socket: FetchConnection
  /** Resolves with the head of the answer, at its first byte or its end. Never rejects. */
  readonly answer: Promise<Response>
  readonly #withoutBody: boolean
  #answered: ((response: Response) => void) | undefined
  #status = 200
  #headers = new Headers()
  #body: ReadableStreamDefaultController<Uint8Array> | undefined
  /** The chunk that waits for the host, and the callback for when the host has taken it. */
  #chunk: Uint8Array | undefined
  #taken: (() => void) | undefined
  /** `true` while the host asks for a chunk. */
  #asked = false

  constructor(method: string, socket: FetchConnection) {
    super()
    this.socket = socket
    this.#withoutBody = method === 'HEAD'
    this.answer = new Promise((resolve) => (this.#answered = resolve))
    this.on('error', ignore)
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.#status = status
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined || OF_CONNECTION.has(name.toLowerCase())) continue
      if (Array.isArray(value)) for (const each of value) this.#headers.append(name, each)
      else this.#headers.set(name, String(value))
    }
    return this
  }

  override _write(chunk: Uint8Array, _encoding: string, written: () => void): void {
    if (chunk.byteLength === 0 || this.#withoutBody) {
      written()
      return
    }
    this.#chunk = chunk
    this.#taken = written
    if (this.#answered !== undefined) this.#respond(this.#stream())
    this.#give()
  }

  override _final(done: () => void): void {
    if (this.#answered !== undefined) this.#respond(null)
    this.#body?.close()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.writableFinished) {
      if (this.#answered !== undefined) {
        this.#status = CLIENT_CLOSED_REQUEST
        this.#headers = new Headers()
        this.#respond(null)
      }
      // An error would be in the log of the host, and the client is gone.
      if (this.socket.lost) this.#body?.close()
      else this.#body?.error(error ?? new Error('the answer was not completed'))
    }
    done(error)
  }

  #respond(body: ReadableStream<Uint8Array> | null): void {
    this.#answered?.(new Response(body, { status: this.#status, headers: this.#headers }))
    this.#answered = undefined
  }

  #stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#body = controller
        },
        pull: () => {
          this.#asked = true
          const taken = this.#taken
          if (this.#chunk === undefined && taken !== undefined) {
            this.#taken = undefined
            taken()
          }
          this.#give()
        },
        cancel: () => {
          this.#body = undefined
          this.socket.lose()
        },
      },
      { highWaterMark: 0 },
    )
  }

  #give(): void {
    const chunk = this.#chunk
    if (!this.#asked || chunk === undefined) return
    this.#asked = false
    this.#chunk = undefined
    this.#body?.enqueue(chunk)
  }
}

/** The client is gone: `close` reports that. */
function ignore(): void {}
