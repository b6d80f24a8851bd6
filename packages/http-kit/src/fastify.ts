import type { OutgoingHttpHeaders } from 'node:http'

import type { FastifyInstance, FastifyReply } from 'fastify'

/** For plugins whose endpoint reads the body itself, after origin and credentials have been checked. */
export function leaveBodiesUnread(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
}

/** A content type that Fastify cannot read does not reach the parsers; the endpoint says what it has to be. */
export function isUnreadableContentType(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE'
}

/**
 * Takes the reply away from Fastify, and returns what hooks have set so far, such as CORS headers: Fastify writes none of
 * it on a reply that was taken over.
 */
export function takeOver(reply: FastifyReply): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {}
  const all = reply.getHeaders()
  for (const name in all) {
    const value = all[name]
    headers[name] = typeof value === 'number' ? String(value) : value
  }
  reply.hijack()
  return headers
}
