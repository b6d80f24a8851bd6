import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:http'

/** JSON of any shape: tests look into what they expect, and fail where it is not there. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Loose = any

export interface SseMessage {
  readonly event: string
  readonly id: string | undefined
  readonly data: string
}

/** A reader of server-sent events, as the HTML standard says, that shows what a test wants to see. */
export interface SseClient {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Comments so far. */
  readonly comments: readonly string[]
  /** The next event; rejects when the stream ends before one. */
  next(): Promise<SseMessage>
  /** The next event's data as JSON. */
  nextJson(): Promise<Loose>
  /** Events that came and were not asked for yet. */
  readonly waiting: readonly SseMessage[]
  /** Resolves when the server has ended the stream, or it broke. */
  readonly ended: Promise<void>
  pause(): void
  resume(): void
  /** Breaks the connection. */
  close(): void
}

/** Resolves when the head of the answer is there; rejects with the answer's text unless it is 200. */
export function openSse(url: string, headers: Readonly<Record<string, string>> = {}): Promise<SseClient> {
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = request(
      url,
      { headers: { accept: 'text/event-stream', ...headers }, agent: new Agent({ keepAlive: false }) },
      (response) => {
        if (response.statusCode === 200) {
          resolve(new Client(outgoing, response))
          return
        }
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => reject(new Error(`${response.statusCode} ${text}`)))
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

class Client implements SseClient {
  readonly #request: ClientRequest
  readonly #response: IncomingMessage
  readonly comments: string[] = []
  readonly waiting: SseMessage[] = []
  readonly ended: Promise<void>
  #over = false
  #askers: { readonly resolve: (message: SseMessage) => void; readonly reject: (error: Error) => void }[] = []
  #rest = ''

  constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request
    this.#response = response
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    response.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
    response.on('error', () => {})
    request.on('error', () => {})
    response.on('close', () => {
      this.#over = true
      for (const { reject } of this.#askers) reject(new Error('the stream ended'))
      this.#askers = []
      resolve()
    })
  }

  get status(): number {
    return this.#response.statusCode ?? 0
  }

  get headers(): IncomingHttpHeaders {
    return this.#response.headers
  }

  next(): Promise<SseMessage> {
    const message = this.waiting.shift()
    if (message) return Promise.resolve(message)
    if (this.#over) return Promise.reject(new Error('the stream ended'))
    return new Promise((resolve, reject) => this.#askers.push({ resolve, reject }))
  }

  async nextJson(): Promise<Loose> {
    return JSON.parse((await this.next()).data)
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  close(): void {
    this.#request.destroy()
  }

  #read(chunk: string): void {
    const blocks = (this.#rest + chunk).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) this.#block(block)
  }

  #block(block: string): void {
    let event = 'message'
    let id: string | undefined
    const data: string[] = []
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':')
      if (colon === 0) this.comments.push(line.slice(1).trimStart())
      if (colon <= 0) continue
      const value = line.slice(colon + 1).replace(/^ /, '')
      const field = line.slice(0, colon)
      if (field === 'event') event = value
      else if (field === 'id') id = value
      else if (field === 'data') data.push(value)
    }
    if (data.length === 0) return
    const message = { event, id, data: data.join('\n') }
    const asker = this.#askers.shift()
    if (asker) asker.resolve(message)
    else this.waiting.push(message)
  }
}
