import type { IncomingMessage } from 'node:http'

import type { Identity } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'

import type { Logger } from './log.ts'
import { peerName } from './security/tls.ts'

/** The longest path that is logged, in characters. */
const MAX_PATH = 256

/**
 * A line for each request when it is over; for a stream, when the stream is. Queries are left out: they may hold receipts
 * and what pages should not keep.
 */
export class RequestLog {
  readonly #log: Logger
  readonly #callers = new WeakMap<object, string>()

  constructor(log: Logger) {
    // These lines hold nothing that would have to be hidden, and looking for it would be three quarters of their cost.
    this.#log = log.child({}, { redact: [] })
  }

  /** For the authenticator: who made the request. */
  readonly verified = (request: object, { clientId }: Identity): void => {
    this.#callers.set(request, clientId)
  }

  addTo(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      const { raw, id } = request
      const { remoteAddress: address } = raw.socket
      const startedAt = performance.now()
      // Not Fastify's own hook: that is silent about clients that went away, and so about most streams.
      reply.raw.once('close', () => {
        const peer = peerName(raw.socket)
        this.#log.info(
          {
            id,
            method: raw.method,
            path: pathOf(raw),
            status: reply.raw.statusCode,
            ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
            client: this.#callers.get(raw),
            address,
            trace: traceIdOf(raw),
            ...(peer === undefined ? {} : { peer }),
          },
          'request',
        )
      })
      done()
    })
  }
}

/** The trace that the caller says the request belongs to (W3C Trace Context). */
function traceIdOf({ headers: { traceparent } }: IncomingMessage): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  return /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/.exec(traceparent)?.[1]
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  const path = mark === -1 ? url : url.slice(0, mark)
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path
}
