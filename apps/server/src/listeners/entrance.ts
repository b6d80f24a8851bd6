import type { RequestListener, Server, ServerOptions } from 'node:http'
import process from 'node:process'

import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'

import type { Health } from '../health/health.ts'
import { addProbes } from '../health/probes.ts'
import { NO_SCHEMAS } from '../http/no-schemas.ts'
import { undecodablePath } from '../http/plain-text.ts'
import type { Tls } from '../security/tls.ts'

// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const { createServer } = process.getBuiltinModule('node:http')

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

export interface EntranceOptions {
  readonly health: Health
  /** @default plain TCP */
  readonly tls?: Tls | undefined
  readonly timeouts?: Timeouts | undefined
}

/**
 * The server of the shared listener. It listens before the store is open: until {@link open} it
 * answers the probes, and 503 to other requests.
 */
export class Entrance {
  /** The instance that answers until the listener is open; call its `listen`. */
  readonly starting: FastifyInstance
  readonly server: Server
  #next: RequestListener | undefined
  #handler: RequestListener | undefined
  readonly #dispatch: RequestListener = (request, response) => this.#handler?.(request, response)

  constructor({ health, tls, timeouts = TIMEOUTS }: EntranceOptions) {
    const http: ServerOptions = {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: Math.min(timeouts.headersMs, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEPALIVE_MS,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
    }
    this.server = tls?.createServer(http, this.#dispatch) ?? createServer(http, this.#dispatch)
    this.starting = Fastify({
      schemaController: NO_SCHEMAS,
      logger: false,
      frameworkErrors: undecodablePath,
      forceCloseConnections: 'idle',
      pluginTimeout: 0,
      serverFactory: (handler) => {
        this.#handler = handler
        return this.server
      },
    })
    addProbes(this.starting, health)
    this.starting.setNotFoundHandler((_request, reply) =>
      reply
        .code(503)
        .headers({ 'retry-after': '1', 'x-content-type-options': 'nosniff' })
        .type('text/plain; charset=utf-8')
        .send('the server is starting; try again in a moment\n'),
    )
  }

  /** Sets the handler that answers once the listener is open. For Fastify's `serverFactory`. */
  prepare(handler: RequestListener): Server {
    this.#next = handler
    return this.server
  }

  /** Switches to the prepared handler. */
  open(): void {
    if (this.#next === undefined) return
    this.server.off('request', this.#dispatch)
    this.server.on('request', this.#next)
  }
}
