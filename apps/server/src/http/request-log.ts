import type { IncomingMessage, ServerResponse } from 'node:http'

import type { AuthenticationRequest, Identity, TrustedProxies } from '@signalbox/http-kit'
import { addressOf } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'

import type { Logger } from '../logging/logger.ts'
import { peerName } from '../security/tls.ts'

/** The longest path that is logged, in characters. */
const MAX_PATH = 256

/** What the line of a request needs to know, on the request itself: a `WeakMap` entry for each makes collections longer. */
const ENTRY = Symbol('log entry')

interface Entry {
  readonly id: string
  readonly startedAt: number
  readonly address: string | undefined
  client: string | undefined
}

interface Logged {
  [ENTRY]?: Entry
}

/**
 * A line for each request when it is over; for a stream, when the stream is. Queries are left out: they may hold receipts
 * and what pages should not keep.
 */
export class RequestLog {
  readonly #log: Logger

  readonly #proxies: TrustedProxies

  constructor(log: Logger, proxies: TrustedProxies) {
    this.#proxies = proxies
    // These lines hold nothing that would have to be hidden, and looking for it would be three quarters of their cost.
    this.#log = log.child({}, { redact: [] })
  }

  /** For the authenticator: who made the request. */
  readonly verified = (request: AuthenticationRequest & Logged, { clientId }: Identity): void => {
    const entry = request[ENTRY]
    if (entry !== undefined) entry.client = clientId
  }

  addTo(app: FastifyInstance): void {
    const log = this.#log
    const proxies = this.#proxies
    /** One for all requests; node calls it on the response. */
    function closed(this: ServerResponse<IncomingMessage & Logged>): void {
      const { req: request, statusCode: status } = this
      const entry = request[ENTRY]
      if (entry === undefined) return
      const { id, startedAt, address, client } = entry
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000
      const { method, socket } = request
      const path = pathOf(request)
      const trace = traceIdOf(request)
      log.info({ id, method, path, status, ms, client, address, trace, peer: peerName(socket) }, 'request')
    }
    app.addHook('onRequest', (request, reply, done) => {
      const raw: IncomingMessage & Logged = request.raw
      proxies.locate(raw)
      raw[ENTRY] = {
        id: request.id,
        startedAt: performance.now(),
        address: addressOf(raw),
        client: undefined,
      }
      // Not Fastify's own hook: that is silent about clients that went away, and so about most streams.
      reply.raw.on('close', closed)
      done()
    })
  }
}

/** What a log line says of the request that something failed for; `id` where requests are logged. */
export function requestFields(request: (IncomingMessage & Logged) | undefined): Readonly<Record<string, unknown>> {
  if (request === undefined) return {}
  return { id: request[ENTRY]?.id, method: request.method, path: pathOf(request) }
}

/** The trace that the caller says the request belongs to (W3C Trace Context). */
function traceIdOf({ headers: { traceparent } }: IncomingMessage): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  return /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/.exec(traceparent)?.[1]
}

/** The path of a request, for the log: without its query, which may hold receipts. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  const path = mark === -1 ? url : url.slice(0, mark)
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path
}
