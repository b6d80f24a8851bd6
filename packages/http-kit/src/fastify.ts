import type { OutgoingHttpHeaders } from 'node:http'

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

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

/** Options of {@link addUnreadRoutes}. */
export interface UnreadRouteOptions {
  /**
   * Run the preValidation and preHandler hooks of the host. Without them a request is taken over right after the
   * onRequest and preParsing hooks. @default true
   */
  readonly runHostHooks?: boolean
}

/** Answers the request itself, after it took the reply over. */
export type ServeUnread = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Serves paths with every method, for a plugin whose endpoint reads bodies itself, after origin and credentials have been
 * checked. No body of the plugin's other routes is read either, so it is for plugins that have no others.
 */
export function addUnreadRoutes(
  app: FastifyInstance,
  routes: Iterable<readonly [url: string, serve: ServeUnread]>,
  { runHostHooks = true }: UnreadRouteOptions = {},
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
  for (const [url, serve] of routes) {
    app.route({
      method: app.supportedMethods,
      url,
      exposeHeadRoute: false,
      handler: serve,
      errorHandler: (error, request, reply) => {
        if (!isUnreadableContentType(error)) throw error
        serve(request, reply)
      },
      // A hook that hijacks does not go on to the next one, and so not to Fastify's own handling of bodies.
      ...(runHostHooks ? {} : { preParsing: serve }),
    })
  }
}

/** A content type that Fastify cannot read does not reach the parsers; the endpoint says what it has to be. */
function isUnreadableContentType(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE'
}
