import type { Server, ServerOptions } from 'node:http'
import process from 'node:process'
import type { Duplex } from 'node:stream'

import type { Health } from '../health/health.ts'
import type { Answer } from '../http/answers.ts'
import { textAnswer } from '../http/answers.ts'
import type { Logger } from '../logging/logger.ts'
import type { Tls } from '../security/tls.ts'
import type { Drain } from './address.ts'
import { drain } from './address.ts'
import { Router } from './router.ts'

// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')

/**
 * The time for a client to send, in ms. The time of an answer is not limited: long polls last a
 * minute, commands an hour, streams permanently. TCP keepalive detects peers that vanished.
 */
export interface Timeouts {
  /** For the head of a request. */
  readonly headersMs: number
  /** For the whole request. */
  readonly requestMs: number
  /** Between two requests on a connection. */
  readonly keepAliveMs: number
}

const TIMEOUTS: Timeouts = { headersMs: 15_000, requestMs: 120_000, keepAliveMs: 75_000 }
const TCP_KEEPALIVE_MS = 30_000

export interface SharedServerOptions {
  readonly health: Health
  readonly log: Logger
  /** @default plain TCP */
  readonly tls?: Tls | undefined
  readonly timeouts?: Timeouts | undefined
}

/** The routes of the shared listener, and the end of their connectors. */
export interface SharedRoutes {
  readonly router: Router
  close(): Promise<void>
}

/** The answer to every request but the probes before the store is open. */
const STARTING: Answer = (() => {
  const { status, headers, body } = textAnswer(503, 'the server is starting; try again in a moment')
  const { 'content-type': type = '', ...rest } = headers
  return { status, headers: { 'retry-after': '1', ...rest, 'content-type': type }, body }
})()

/**
 * The server of the shared listener. It listens before the store is open: until {@link open} it
 * answers the probes, and 503 to other requests.
 */
export class SharedServer {
  readonly server: Server
  #router: Router
  #routes: SharedRoutes | undefined
  #drain: Drain | undefined

  constructor({ health, log, tls, timeouts = TIMEOUTS }: SharedServerOptions) {
    const http: ServerOptions = {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: Math.min(timeouts.headersMs, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEPALIVE_MS,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
    }
    this.#router = new Router({ health, log, unknown: () => STARTING })
    this.server = tls?.createServer(http, this.#router.listener) ?? createServer(http, this.#router.listener)
    this.server.on('clientError', refuseBroken)
  }

  /** Takes the routes, which {@link drain} closes from now on. */
  prepare(routes: SharedRoutes): void {
    this.#routes = routes
  }

  /** Answers with the prepared routes. */
  open(): void {
    if (this.#routes === undefined) return
    this.server.off('request', this.#router.listener)
    this.#router = this.#routes.router
    this.server.on('request', this.#router.listener)
  }

  /** Closes the listener, its connectors at once: see {@link drain}. Later calls return the first drain. */
  drain(graceMs: number): Drain {
    return (this.#drain ??= drain(this.server, graceMs, async () => {
      this.#router.close()
      await this.#routes?.close()
    }))
  }
}

/** Answers what is no request of HTTP, or was not sent in time, and closes the connection. */
export function refuseBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const [status, message] = BROKEN[error.code ?? ''] ?? [400, 'Client Error']
  const name = STATUS_CODES[status]
  const body = JSON.stringify({ error: name, message, statusCode: status })
  if (socket.writable) {
    socket.write(
      `HTTP/1.1 ${status} ${name}\r\nContent-Length: ${body.length}\r\nContent-Type: application/json\r\n\r\n${body}`,
    )
  }
  socket.destroy(error)
}

const BROKEN: Readonly<Record<string, readonly [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Client Timeout'],
  ERR_SMALL_CHUNKS: [400, 'The body has too many small chunks: at most 256, and one for each 128 bytes'],
  HPE_HEADER_OVERFLOW: [431, 'Exceeded maximum allowed HTTP header size'],
}
