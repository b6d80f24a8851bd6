import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { toolCall } from '../harness/mcp.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** After this many milliseconds without an answer the connection is broken. @default 60000 */
  readonly timeoutMs?: number
}

/** The open requests and connections, each of which can be aborted. */
interface Open {
  destroy(): unknown
}

/** The identity that a caller presents. */
export interface Identity {
  readonly name: string
  /** The local address of its connections. */
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
}

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** A client of the server under attack, with its own address and any number of connections. */
export class Caller implements Disposable {
  readonly identity: Identity
  readonly http: string
  readonly api: string
  readonly #agent: Agent
  readonly #open = new Set<Open>()

  constructor(http: string, api: string, identity: Identity) {
    this.identity = identity
    this.http = http
    this.api = api
    this.#agent = new Agent({ keepAlive: true, localAddress: identity.address })
  }

  /** Sends a request and reads the answer. Rejects when the connection breaks. */
  async ask(method: string, path: string, options: AskOptions = {}): Promise<Answer> {
    const response = await this.#send(method, path, options, this.#agent)
    let text = ''
    response.setEncoding('utf8')
    for await (const part of response) text += String(part)
    return { status: response.statusCode ?? 0, headers: response.headers, text }
  }

  /** Posts JSON. */
  post(path: string, body: string | object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.ask('POST', path, { headers: { ...JSON_TYPE, ...headers }, body: text })
  }

  tool(name: string, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    return this.post('/mcp', toolCall(name, args))
  }

  /** Opens a response and reads only its head, until it is resumed. */
  async stream(path: string, options: AskOptions & { readonly method?: string } = {}): Promise<HeldResponse> {
    const headers = { accept: 'text/event-stream', ...options.headers }
    const response = await this.#send(options.method ?? 'GET', path, { ...options, headers }, false)
    return new HeldResponse(response)
  }

  /**
   * Opens a bare connection to the shared listener; resolves when it is connected, or with `undefined` if it was
   * refused.
   */
  socket(): Promise<Socket | undefined> {
    const { hostname, port } = new URL(this.http)
    return new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress: this.identity.address })
      this.#keep(socket, 'close')
      socket.on('error', () => resolve(undefined))
      socket.once('connect', () => resolve(socket))
    })
  }

  /** Breaks every open connection. */
  [Symbol.dispose](): void {
    for (const open of this.#open) open.destroy()
    this.#agent.destroy()
  }

  #send(method: string, path: string, options: AskOptions, agent: Agent | false): Promise<IncomingMessage> {
    const { headers = {}, body, timeoutMs = 60_000 } = options
    const url = new URL(path, this.http)
    return new Promise((resolve, reject) => {
      const asked = request(url, {
        method,
        agent,
        localAddress: this.identity.address,
        timeout: timeoutMs,
        headers: {
          ...this.identity.headers,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
          ...headers,
        },
      })
      this.#keep(asked, 'close')
      asked.on('error', reject)
      asked.once('timeout', () => asked.destroy(new Error('no answer in time')))
      asked.once('response', resolve)
      asked.end(body)
    })
  }

  #keep(open: ClientRequest | Socket, end: 'close'): void {
    this.#open.add(open)
    open.once(end, () => this.#open.delete(open))
  }
}

/** A response whose body is not read until a caller asks for it. */
export class HeldResponse {
  readonly status: number
  readonly #response: IncomingMessage

  constructor(response: IncomingMessage) {
    this.#response = response
    this.status = response.statusCode ?? 0
    // Many attacks break connections on purpose.
    response.on('error', () => {})
  }

  /** True if the response is a stream of events. */
  get isStream(): boolean {
    return this.status === 200 && this.#response.headers['content-type']?.startsWith('text/event-stream') === true
  }

  /** Reads the rest of the body; resolves with its text when it has ended or broken. */
  async rest(): Promise<string> {
    let text = ''
    this.#response.setEncoding('utf8')
    try {
      for await (const part of this.#response) text += String(part)
    } catch {}
    return text
  }

  /** Reads and drops all further data. */
  drain(): void {
    this.#response.resume()
  }

  close(): void {
    this.#response.destroy()
  }
}

interface Said {
  readonly error?: { readonly code?: number } | boolean
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] }
  readonly is_error?: boolean
  readonly data?: { readonly code?: string } | null
}

/** Summarizes an answer in a word: its status, and the code of an error. */
export function outcomeOf({ status, text }: Pick<Answer, 'status' | 'text'>): string {
  const code = text.length > 100_000 || !/^\s*\{/.test(text) ? undefined : codeIn(text)
  return code === undefined ? String(status) : `${status} ${code}`
}

function codeIn(text: string): string | undefined {
  let said: Said
  try {
    said = JSON.parse(text) as Said
  } catch {
    return undefined
  }
  if (typeof said.error === 'object') return String(said.error.code)
  if (said.result?.isError === true) return /^[A-Z_]+/.exec(said.result.content?.[0]?.text ?? '')?.[0] ?? 'isError'
  if (said.is_error === true || said.error === true) return said.data?.code ?? 'error'
  return undefined
}

/** Summarizes in a word why a request got no answer. */
export function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
