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
    this.#log = log
  }

  /** For the authenticator: who made the request. */
  readonly verified = (request: object, { clientId }: Identity): void => {
    this.#callers.set(request, clientId)
  }

  addTo(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      const { raw } = request
      const peer = peerName(raw.socket)
      this.#log.info(
        {
          id: request.id,
          method: raw.method,
          path: pathOf(raw),
          status: reply.raw.statusCode,
          ms: Math.round(reply.elapsedTime * 1000) / 1000,
          client: this.#callers.get(raw),
          address: raw.socket.remoteAddress,
          ...(peer === undefined ? {} : { peer }),
        },
        'request',
      )
      done()
    })
  }
}

function pathOf({ url = '/' }: IncomingMessage): string {
  const mark = url.indexOf('?')
  const path = mark === -1 ? url : url.slice(0, mark)
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path
}
