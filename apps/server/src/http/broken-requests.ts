import type { IncomingMessage, ServerResponse } from 'node:http'

import { addressOf } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'

import type { Logger } from '../logging/logger.ts'
import { pathOf } from './request-log.ts'

/**
 * Returns a function that logs, at level debug, a request whose connection is closed before its answer is sent
 * completely; undefined if the level is off.
 */
export function brokenRequestLog(
  log: Logger,
): ((request: IncomingMessage, response: ServerResponse) => void) | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  function closed(this: ServerResponse): void {
    if (this.writableFinished) return
    const { req: request } = this
    const at = !request.complete ? 'in its request' : this.headersSent ? 'in its answer' : 'before its answer'
    log.debug({ method: request.method, path: pathOf(request), at, address: addressOf(request) }, 'client disconnected')
  }
  return (_request, response) => response.on('close', closed)
}

/** Logs the broken requests of a Fastify server, as {@link brokenRequestLog} does. */
export function logBrokenRequests(app: FastifyInstance, log: Logger): void {
  const watch = brokenRequestLog(log)
  if (watch === undefined) return
  app.addHook('onRequest', (request, reply, done) => {
    watch(request.raw, reply.raw)
    done()
  })
}
