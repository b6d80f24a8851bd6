import type { FastifyInstance, FastifyReply } from 'fastify'

import type { Logger } from '../logging/logger.ts'

const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' } as const

/** Unknown paths, `/kill` among them, are 404 in plain text, before anything else looks at the request (S5). */
export function addPlainNotFound(app: FastifyInstance): void {
  // In the first hook, so that no body is read and no content type refused for a path that does not exist.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) notFound(reply)
    else done()
  })
  app.setNotFoundHandler((_request, reply) => notFound(reply))
}

/** For Fastify's `frameworkErrors`: a path that cannot be decoded is one that is not there. */
export function undecodablePath(_error: unknown, _request: unknown, reply: FastifyReply): void {
  void notFound(reply)
}

function notFound(reply: FastifyReply): FastifyReply {
  return reply.code(404).headers(TEXT).send('404 page not found\n')
}

/** What goes wrong outside the connectors is told in one line of plain text, without a stack. */
export function addPlainErrors(app: FastifyInstance, log: Logger): void {
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
