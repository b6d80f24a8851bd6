import { Buffer } from 'node:buffer'

import type { Dispatcher } from 'undici'

import { AgentAddressError } from '../url-safety/agent-address-policy.ts'
import type { AgentConnections } from './agent-connections.ts'
import { AgentTarget } from './agent-target.ts'

export interface AgentFetchOptions {
  readonly connections: AgentConnections
  /** The account that lookups of the host count against. */
  readonly account: string
  readonly accept: string
  /** Further headers, by name. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body of a POST; absent for a GET. */
  readonly body?: Uint8Array
  /** The largest answer, in bytes. */
  readonly maxBytes: number
  /** The time for the whole exchange, in ms. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface AgentDocument {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/**
 * Reads a document of an agent, such as its card or an access token for it, in the way in which agents are called:
 * permitted addresses only, through the operator's proxy and authorities, without redirects and compression.
 * @throws Error whose message says the reason, without the addresses of a name
 */
export async function fetchFromAgent(url: URL, options: AgentFetchOptions): Promise<AgentDocument> {
  const { connections, account, accept, headers = {}, body, timeoutMs, maxBytes } = options
  const target = new AgentTarget(url.href, account, connections)
  if (!target.permitted || (await target.permittedNow?.()) === false) throw new AgentAddressError()
  const sent = ['Host', target.host, 'Accept', accept, 'Accept-Encoding', 'identity', 'User-Agent', 'signalbox']
  for (const [name, value] of Object.entries(headers)) sent.push(name, value)
  const deadline = AbortSignal.timeout(timeoutMs)
  const ends = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline])
  const exchange = new DocumentExchange(maxBytes)
  const onAbort = (): void =>
    exchange.abort(new Error(deadline.aborted ? 'it did not answer in time' : 'shutting down'))
  ends.addEventListener('abort', onAbort, { once: true })
  try {
    if (ends.aborted) onAbort()
    target.request(body === undefined ? 'GET' : 'POST', sent, body ?? null, exchange)
    return await exchange.document
  } finally {
    ends.removeEventListener('abort', onAbort)
  }
}

/** Collects one answer, up to a number of bytes. */
class DocumentExchange implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<AgentDocument>()
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #headers: AgentDocument['headers'] = {}
  #controller: Dispatcher.DispatchController | undefined
  #failure: Error | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    // The caller may be gone before the exchange fails.
    this.#answer.promise.catch(() => {})
  }

  get document(): Promise<AgentDocument> {
    return this.#answer.promise
  }

  abort(reason: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = reason
    this.#answer.reject(reason)
    this.#controller?.abort(reason)
  }

  /** @inheritdoc */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#failure !== undefined) controller.abort(this.#failure)
  }

  /** @inheritdoc */
  onResponseStart(_controller: unknown, status: number, headers: AgentDocument['headers']): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    const { 'content-encoding': encoding = 'identity' } = headers
    if (String(encoding) !== 'identity') this.abort(new Error(`it answered with the encoding ${String(encoding)}`))
  }

  /** @inheritdoc */
  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#bytes += chunk.byteLength
    if (this.#bytes > this.#maxBytes) this.abort(new Error(`it answered with more than ${this.#maxBytes} bytes`))
    else this.#chunks.push(chunk)
  }

  /** @inheritdoc */
  onResponseEnd(): void {
    const text = Buffer.concat(this.#chunks).toString('utf8')
    this.#answer.resolve({ status: this.#status, headers: this.#headers, text })
  }

  /** @inheritdoc */
  onResponseError(_controller: unknown, error: Error): void {
    this.#answer.reject(error)
  }
}
