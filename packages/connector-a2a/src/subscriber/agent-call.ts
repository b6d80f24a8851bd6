import { Buffer } from 'node:buffer'
import type { ClientRequest, IncomingMessage } from 'node:http'

import type { AgentQuery, AgentReply } from '@signalbox/registry'

import {
  AGENT_TIMEOUT,
  connectionFailure,
  invalidResponse,
  PROXY_REFUSED,
  RESPONSE_TOO_LARGE,
  unavailable,
} from './agent-failures.ts'
import type { AgentTarget } from './agent-target.ts'
import { decodeContent, isEncoded } from './content-encoding.ts'
import { carriable, requestHeaders } from './request-headers.ts'

/** What came of a call. */
export interface CallResult {
  readonly reply: AgentReply
  /** With mode `stream` and a 2xx status: the agent's response, its body untouched. Whoever gets it has to end it. */
  readonly events?: IncomingMessage
}

const MAX_TIMER_MS = 2_147_483_647
const NO_BODY = new Uint8Array(0)
const EMPTY = Buffer.alloc(0)

/**
 * One HTTP exchange with an agent. It is sent once and never again: that a connection broke does not say that the agent
 * did not act. Redirects are not followed.
 *
 * Mode `stream` ends at the headers of a 2xx response, every other at the end of the response. The deadline is for all
 * of that (A2).
 */
export class AgentCall {
  readonly #query: AgentQuery
  readonly #maxResponseBytes: number
  readonly #done: (result: CallResult) => void
  readonly #request: ClientRequest
  readonly #timer: NodeJS.Timeout
  #settled = false
  #status = 0
  #complete = false
  #first: Buffer | undefined
  #chunks: Buffer[] | undefined
  #bytes = 0

  /** `done` is called once, and never before the constructor is through. */
  constructor(target: AgentTarget, query: AgentQuery, maxResponseBytes: number, done: (result: CallResult) => void) {
    this.#query = query
    this.#maxResponseBytes = maxResponseBytes
    this.#done = done
    this.#request = begin(target, query)
    this.#timer = setTimeout(() => this.#fail(AGENT_TIMEOUT), Math.min(query.timeoutMs, MAX_TIMER_MS))
    this.#timer.unref()
    this.#request.on('response', (response) => this.#head(response))
    this.#request.on('error', (error) => this.#broken(error))
    // An answer that switches protocols ends so, without an error or a response.
    this.#request.on('close', () => this.#broken(undefined))
    send(this.#request, query.body)
  }

  /** Breaks it off at once, with this reply. After the end nothing happens. */
  abort(reply: AgentReply): void {
    this.#fail(reply)
  }

  #head(response: IncomingMessage): void {
    const { statusCode: status = 0, headers } = response
    const { mode } = this.#query
    this.#status = status
    if (status === 502 || status === 503 || status === 504) {
      this.#fail(unavailable(status))
      return
    }
    // Only a proxy says so (RFC 9110, section 15.5.8): the agent never saw the request.
    if (status === 407) {
      this.#fail(PROXY_REFUSED)
      return
    }
    if (mode === 'stream' && status >= 200 && status <= 299) {
      if (isEncoded(headers['content-encoding'])) this.#fail(invalidResponse(status))
      else this.#settle({ reply: { executed: true, error: '', status, body: NO_BODY }, events: response })
      return
    }
    if (isEventStream(headers['content-type'])) {
      this.#fail(invalidResponse(status))
      return
    }
    if (Number(headers['content-length']) > this.#maxResponseBytes) {
      this.#fail(RESPONSE_TOO_LARGE)
      return
    }
    response.on('data', (chunk: Buffer) => this.#data(chunk))
    response.on('end', () => this.#end(response))
    // Aborted on the way; that is told by `close` of the request as well.
    response.on('error', () => {})
  }

  #data(chunk: Buffer): void {
    if (this.#settled) return
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#maxResponseBytes) this.#fail(RESPONSE_TOO_LARGE)
    else if (this.#first === undefined) this.#first = chunk
    else (this.#chunks ??= [this.#first]).push(chunk)
  }

  #end({ headers }: IncomingMessage): void {
    if (this.#settled) return
    this.#complete = true
    const status = this.#status
    const body = this.#chunks === undefined ? (this.#first ?? EMPTY) : Buffer.concat(this.#chunks, this.#bytes)
    const encoding = headers['content-encoding']
    if (isEncoded(encoding) && body.byteLength > 0) {
      decodeContent(encoding, { status, body }, this.#maxResponseBytes, (reply) => this.#settle({ reply }))
    } else {
      this.#settle({ reply: { executed: true, error: '', status, body } })
    }
  }

  #broken(error: unknown): void {
    if (this.#settled) return
    // Once the head of a response was there, the agent had the request.
    if (this.#status === 0) this.#fail(connectionFailure(error))
    else if (!this.#complete) this.#fail(invalidResponse(this.#status))
  }

  #fail(reply: AgentReply): void {
    if (this.#settled) return
    this.#settle({ reply })
    this.#request.destroy()
  }

  #settle(result: CallResult): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#first = this.#chunks = undefined
    this.#done(result)
  }
}

/** Up to here a body is sent with its head in one write; copying a larger one costs more than the second. */
const ONE_WRITE_BYTES = 16_384

function send(request: ClientRequest, body: Uint8Array): void {
  if (body.byteLength > ONE_WRITE_BYTES) {
    request.end(body)
  } else {
    // Node puts head and body together where both are text; as latin1, each character is one byte of the body.
    request.end(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'), 'latin1')
  }
}

function begin(target: AgentTarget, query: AgentQuery): ClientRequest {
  try {
    return target.post(requestHeaders(target.host, query))
  } catch {
    return target.post(requestHeaders(target.host, { ...query, headers: carriable(query.headers) }))
  }
}

function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^text\/event-stream\s*(?:;|$)/i.test(contentType)
}
