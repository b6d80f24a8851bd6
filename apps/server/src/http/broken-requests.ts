import type { ServerResponse } from 'node:http'

import { addressOf } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'

import type { Logger } from '../logging/logger.ts'
import { pathOf } from './request-log.ts'

/**
 * Logs, at level debug, each request whose connection was closed before its answer was sent
 * completely.
 */
export function logBrokenRequests(app: FastifyInstance, log: Logger): void {
  if (!log.isLevelEnabled('debug')) return
  function closed(this: ServerResponse): void {
    if (this.writableFinished) return
    const { req: request } = this
    const at = !request.complete ? 'in its request' : this.headersSent ? 'in its answer' : 'before its answer'
    log.debug({ method: request.method, path: pathOf(request), at, address: addressOf(request) }, 'client disconnected')
  }
  app.addHook('onRequest', (_request, reply, done) => {
    reply.raw.on('close', closed)
    done()
  })
}
