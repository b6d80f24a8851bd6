import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

/** The connection of a request. Node's Socket is one. */
export interface HttpConnection {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  /** `true` for TLS. */
  readonly encrypted?: boolean
  /** `true` if the connection serves no other request. A connection of Node can serve many. */
  readonly single?: boolean
  readonly destroyed?: boolean
  /** Closes the connection with all its requests. */
  destroy?(): unknown
  once(event: 'close', listener: (hadError: boolean) => void): unknown
}

/**
 * The part of a request that surfaces use. Node's IncomingMessage is one; a host in the style of fetch gets another
 * one ({@link serveFetch}).
 */
export interface HttpRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly socket: HttpConnection
  readonly readableEnded: boolean
  readonly readableDidRead: boolean
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'end' | 'close', listener: () => void): unknown
  off(event: 'data', listener: (chunk: Buffer) => void): unknown
  off(event: 'end', listener: () => void): unknown
  pause(): unknown
  resume(): unknown
}

/** The part of a response that surfaces use. Node's ServerResponse is one. */
export interface HttpResponse {
  shouldKeepAlive: boolean
  readonly socket: HttpConnection | null
  readonly destroyed: boolean
  readonly closed: boolean
  readonly statusCode: number
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  readonly writableLength: number
  readonly writableNeedDrain: boolean
  writeHead(status: number, headers?: OutgoingHttpHeaders): unknown
  write(chunk: string | Uint8Array, written?: (error?: Error | null) => void): boolean
  end(chunk?: string | Uint8Array): unknown
  destroy(error?: Error): unknown
  on(event: 'close' | 'drain', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close' | 'finish', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** A handler for a request of Node, or for a similar one. `headers` are added to the answer. */
export type HttpHandler = (request: HttpRequest, response: HttpResponse, headers?: OutgoingHttpHeaders) => void

/** The header with the number of brokers that a request to an agent has passed, in lower case. */
const HOPS_HEADER = 'x-broker-hops'

/** The most brokers that a request may have passed. */
export const MAX_AGENT_HOPS = 8

/** A larger number is not a plausible count. */
const HOPS = /^\d{1,6}$/

/**
 * Returns the number of brokers that a request has passed: 0 without the header, the largest number if proxies joined
 * several headers, and `Infinity` for a value that is not a number.
 */
export function hopsOf(headers: IncomingHttpHeaders): number {
  const header = headers[HOPS_HEADER]
  if (header === undefined) return 0
  // Node joins headers of one name with commas.
  const parts = String(header).slice(0, 64).split(',')
  return Math.max(...parts.map((part) => (HOPS.test(part.trim()) ? Number(part) : Infinity)))
}

/** Returns the problem of a request that has passed too many brokers; `undefined` for other requests. */
export function hopsProblem(hops: number): string | undefined {
  if (hops <= MAX_AGENT_HOPS) return undefined
  const many = hops === Infinity ? 'an unknown number of brokers' : `${hops} brokers`
  return `the request has passed through ${many} (X-Broker-Hops); at most ${MAX_AGENT_HOPS} are allowed. Look for agents that call each other in a loop`
}
