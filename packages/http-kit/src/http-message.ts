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
  once(event: 'close', listener: (hadError: boolean) => void): unknown
}

/**
 * The part of a request that endpoints use. Node's IncomingMessage is one; a host in the style of fetch gets another
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
  resume(): unknown
}

/** The part of a response that endpoints use. Node's ServerResponse is one. */
export interface HttpResponse {
  shouldKeepAlive: boolean
  readonly socket: HttpConnection | null
  readonly destroyed: boolean
  readonly closed: boolean
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
