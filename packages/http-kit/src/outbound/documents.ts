import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import process from 'node:process'

import type { ResolveHost } from '../names/name-resolver.ts'
import { lookupBy } from './address-policy.ts'
import type { Answer } from './answer-reader.ts'
import { AnswerReader } from './answer-reader.ts'
import type { OutboundConnections } from './connections.ts'
import { OutboundTarget } from './connections.ts'

export interface FetchOptions {
  readonly connections: OutboundConnections
  /** The account that lookups of the host count against. */
  readonly account: string
  readonly accept: string
  /** Further headers, by name. @default none */
  readonly headers?: Readonly<Record<string, string>>
  /** The body of a POST. @default none, which is a GET */
  readonly body?: Uint8Array
  /** The largest answer, in bytes. */
  readonly maxBytes: number
  /** The time for the whole exchange, in ms. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads a document of a server that a caller chose, such as the card of an agent: from permitted addresses only, through
 * the operator's proxy and authorities, without redirects and compression.
 * @throws Error whose message says the reason, without the addresses of a name; that of the policy for a refused address
 */
export async function fetchDocument(url: URL, options: FetchOptions): Promise<Answer> {
  const { connections, account, accept, headers = {}, body, timeoutMs, maxBytes, signal } = options
  const target = new OutboundTarget(url.href, account, connections)
  if (!target.permitted || (await target.permittedNow?.()) === false) throw connections.addressPolicy.refusal()
  const sent = ['Host', target.host, 'Accept', accept, 'Accept-Encoding', 'identity', 'User-Agent', 'signalbox']
  for (const [name, value] of Object.entries(headers)) sent.push(name, value)
  const reader = new AnswerReader({ headMs: timeoutMs, maxBytes })
  const onAbort = (): void => reader.abort(new Error('shutting down'))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    if (signal?.aborted === true) onAbort()
    target.request(body === undefined ? 'GET' : 'POST', sent, body ?? null, reader)
    return await reader.answer
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

export interface DownloadOptions {
  /** The value of the header Accept. */
  readonly accept: string
  /** The largest document, in bytes. */
  readonly maxBytes: number
  /** Ends the download; the promise rejects with its reason. */
  readonly signal: AbortSignal
  readonly resolve: ResolveHost
}

/**
 * Reads a document that the operator configured, such as a key set: from any address, with status 200, not compressed,
 * and without redirects. Many servers read one while they start, so it uses Node's own client: undici takes eight times
 * as long to load.
 * @throws Error for another answer, or without one
 */
export async function download(url: URL, options: DownloadOptions): Promise<string> {
  const { maxBytes, signal } = options
  try {
    const response = await answerOf(url, options)
    const { statusCode = 0, headers } = response
    try {
      if (statusCode !== 200) throw new Error(`the server answered with status ${statusCode}`)
      const { 'content-encoding': encoding = 'identity' } = headers
      if (encoding !== 'identity') throw new Error(`the server answered with the encoding ${encoding}; use none`)
      return await textOf(response, maxBytes)
    } finally {
      response.destroy()
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

function answerOf(url: URL, { accept, signal, resolve }: DownloadOptions): Promise<IncomingMessage> {
  // An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
  const { request } =
    url.protocol === 'https:' ? process.getBuiltinModule('node:https') : process.getBuiltinModule('node:http')
  return new Promise((answered, failed) => {
    const headers = { accept, 'accept-encoding': 'identity', connection: 'close', 'user-agent': 'signalbox' }
    request(url, { headers, signal, lookup: lookupBy(resolve) }, answered)
      .on('error', failed)
      .end()
  })
}

async function textOf(response: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.byteLength
    if (size > maxBytes) throw new Error(`the server answered with more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
