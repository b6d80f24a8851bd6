import { Buffer } from 'node:buffer'
import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { Readable, Writable } from 'node:stream'

import { bytesOf } from './body.ts'
import type { HttpConnection, HttpHandler, HttpRequest, HttpResponse } from './http-message.ts'

/** Facts about a fetch request that only its host knows. */
export interface FetchContext {
  /** The client's address. Limits count anonymous callers by it. @default all anonymous callers count as one */
  readonly clientAddress?: string | undefined
  /** The body, if the host has read it: the text, the bytes, or the parsed JSON. @default the body of the request */
  readonly body?: unknown
}

/**
 * Answers a fetch request with a handler. The answer has its body as a stream. Aborting the request's signal, and
 * canceling the body of the answer, is the same as a client that disconnects.
 * @throws TypeError for a value that is not a Request, and for a request whose body was read and is not in the context
 */
export async function serveFetch(
  handler: HttpHandler,
  request: Request,
  context: FetchContext = {},
): Promise<Response> {
  if (!isRequest(request)) {
    throw new TypeError('the fetch handler takes a Request of the Fetch API; for requests of node:http use `handler`')
  }
  // Hosts pass their own second argument if the handler is registered without a function around it.
  const { clientAddress, body }: { readonly clientAddress?: unknown; readonly body?: unknown } = Object(context)
  if (request.bodyUsed && body === undefined) {
    throw new TypeError(
      'the body of the request was read before the fetch handler; pass it as the second argument: { body }',
    )
  }
  const url = new URL(request.url)
  const connection = new FetchConnection(url, typeof clientAddress === 'string' ? clientAddress : undefined)
  const incoming = new FetchRequest(request, url, connection, body === undefined ? undefined : bytesOf(body))
  const response = new FetchResponse(request.method, connection)
  const { signal } = request
  const lose = (): void => connection.lose()
  connection.once('close', () => {
    signal.removeEventListener('abort', lose)
    response.destroy()
  })
  response.once('close', () => incoming.destroy())
  if (signal.aborted) connection.lose()
  else signal.addEventListener('abort', lose, { once: true })
  handler(incoming, response)
  return response.answer
}

function isRequest(value: unknown): value is Request {
  return (
    typeof value === 'object' &&
    value !== null &&
    'url' in value &&
    typeof value.url === 'string' &&
    'headers' in value &&
    typeof value.headers === 'object' &&
    value.headers !== null &&
    'get' in value.headers &&
    'signal' in value
  )
}

/** A fetch request as surfaces read requests. Reads the body only when the surface does. */
class FetchRequest extends Readable implements HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly socket: FetchConnection
  readonly #kept: Buffer | undefined
  readonly #source: Request['body']
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  /** @param kept The body, if the host has read it */
  constructor(request: Request, url: URL, socket: FetchConnection, kept: Buffer | undefined) {
    super()
    this.method = request.method
    this.url = url.pathname + url.search
    const entries = [...request.headers]
    this.rawHeaders = entries.flat()
    this.headers = Object.fromEntries(entries)
    // The host derives the URL from this header, and need not keep it.
    this.headers.host ??= url.host
    this.socket = socket
    this.#kept = kept
    this.#source = kept === undefined ? request.body : null
    this.on('error', ignore)
  }

  override _read(): void {
    if (this.#source === null) {
      if (this.#kept !== undefined && this.#kept.byteLength > 0) this.push(this.#kept)
      this.push(null)
      return
    }
    this.#reader ??= this.#source.getReader()
    this.#reader.read().then(
      ({ done, value }) => this.push(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  }

  async #stop(): Promise<void> {
    try {
      await this.#reader?.cancel()
    } catch {}
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // A host that waits for the body to be read would keep it in memory.
    if (!this.readableEnded) void this.#stop()
    done(error)
  }
}

/** The status of an answer whose client disconnected before it, as proxies log it. */
const CLIENT_CLOSED_REQUEST = 499

/** Headers of a connection, which is the host's. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/**
 * The answer to a fetch request as surfaces write responses. A written chunk counts as unread until the host asks for
 * the next one, so a slow reader is noticed as on a socket.
 */
class FetchResponse extends Writable implements HttpResponse {
  shouldKeepAlive = true
  readonly socket: FetchConnection
  /** Resolves with the head of the answer, at its first byte or its end. Never rejects. */
  readonly answer: Promise<Response>
  readonly #withoutBody: boolean
  #answered: ((response: Response) => void) | undefined
  statusCode = 200
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
    this.statusCode = status
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
        this.statusCode = CLIENT_CLOSED_REQUEST
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
    this.#answered?.(new Response(body, { status: this.statusCode, headers: this.#headers }))
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

/** The client is gone: the response's `close` reports that. */
function ignore(): void {}

/** The connection of one fetch request: the host does not show the real one. */
class FetchConnection extends EventEmitter<{ close: [hadError: boolean] }> implements HttpConnection {
  readonly single = true
  readonly encrypted: boolean
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string | undefined
  /** `true` after the client disconnected. */
  lost = false

  /** @param remoteAddress The client's address; `undefined` if the host does not know it */
  constructor({ protocol, hostname, port }: URL, remoteAddress: string | undefined) {
    super()
    this.encrypted = protocol === 'https:'
    this.localAddress = hostname
    this.localPort = port === '' ? (this.encrypted ? 443 : 80) : Number(port)
    this.remoteAddress = remoteAddress
  }

  /** Reports that the client disconnected. */
  lose(): void {
    if (this.lost) return
    this.lost = true
    this.emit('close', true)
  }
}
