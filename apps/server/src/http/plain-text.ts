import { closeUnread } from '@signalbox/http-kit/fastify'
import type { FastifyInstance, FastifyReply } from 'fastify'

import type { Logger } from '../logging/logger.ts'
import type { FrontPage } from './front-page.ts'
import { isFrontPage, sendFrontPage } from './front-page.ts'

const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' } as const

/**
 * Answers unknown paths, including `/kill`, with 404 in plain text, before any other check (S5). The answer at `/` has
 * links.
 */
export function addPlainNotFound(app: FastifyInstance, page: FrontPage): void {
  // In the first hook, so that no body is read and no content type refused for a path that does not
  // exist.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) done()
    else if (isFrontPage(request)) sendFrontPage(request, reply, page)
    else notFound(reply)
  })
  app.setNotFoundHandler((_request, reply) => notFound(reply))
}

/** Answers 404 for a path that cannot be decoded. For Fastify's `frameworkErrors`. */
export function undecodablePath(_error: unknown, _request: unknown, reply: FastifyReply): void {
  void notFound(reply)
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).headers(TEXT).send('404 page not found\n')
}

/**
 * Answers errors outside the connectors with one line of plain text, without a stack. No answer waits for the rest of
 * a body.
 */
export function addPlainErrors(app: FastifyInstance, log: Logger): void {
  closeUnread(app)
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error)
    if (status >= 500) log.error({ err: error }, 'request failed')
    const message = status < 500 && error instanceof Error ? error.message : 'internal error'
    return reply.code(status).headers(TEXT).send(`${message}\n`)
  })
}

function statusOf(error: unknown): number {
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : 500
}
