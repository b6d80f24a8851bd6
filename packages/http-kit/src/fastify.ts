import type { OutgoingHttpHeaders } from 'node:http'

import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

import { LINGER_MS } from './surface/body.ts'
import type { Connector } from './surface/connector.ts'
import type { HttpHandler } from './surface/http-message.ts'
import type { ConnectorOptions } from './surface/options.ts'

/** The part of a connector that mounts it in Fastify. */
export interface FastifyMount {
  /**
   * The connector as a Fastify 5 plugin: `app.register(connector.plugin)`. It closes the connector when the server
   * closes.
   */
  readonly plugin: FastifyPluginCallback
}

/** Returns a connector with the plugin that serves its routes. */
export function withPlugin<C extends Connector>(
  connector: C,
  routes: Iterable<readonly [url: string, serve: ServeUnread]>,
  { runHostHooks = true }: Pick<ConnectorOptions, 'runHostHooks'>,
): C & FastifyMount {
  return {
    ...connector,
    plugin: (app, _options, done) => {
      addUnreadRoutes(app, routes, { runHostHooks })
      app.addHook('preClose', () => connector.close())
      done()
    },
  }
}

/**
 * Closes connections whose body does not arrive within seconds after Fastify's answer, such as 404 and 403. Otherwise
 * they stay open until the time-out of the request.
 */
export function closeUnread(app: FastifyInstance): void {
  app.addHook('onResponse', ({ raw }, _reply, done) => {
    if (!raw.complete) {
      const timer = setTimeout(() => raw.destroy(), LINGER_MS)
      timer.unref()
      raw.once('end', () => clearTimeout(timer))
      raw.once('close', () => clearTimeout(timer))
    }
    done()
  })
}

/** Returns the Fastify handler for a handler of a connector. */
export function served(handler: HttpHandler): ServeUnread {
  return (request, reply) => handler(request.raw, reply.raw, takeOver(reply))
}

/**
 * Takes the reply over from Fastify. Returns the headers that hooks have set so far, such as CORS headers: Fastify
 * does not write them on a reply that was taken over.
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
   * Runs the preValidation and preHandler hooks of the host. If `false`, the route is served right after the
   * onRequest and preParsing hooks.
   * @default true
   */
  readonly runHostHooks?: boolean
}

/** Answers the request, after taking over the reply. */
export type ServeUnread = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Adds routes for every method, for a plugin whose surface reads bodies itself, after it has checked the origin and
 * the credentials. Fastify then reads no body in this plugin, so register other routes in another plugin.
 */
export function addUnreadRoutes(
  app: FastifyInstance,
  routes: Iterable<readonly [url: string, serve: ServeUnread]>,
  { runHostHooks = true }: UnreadRouteOptions = {},
): void {
  readNoBodies(app)
  for (const [url, serve] of routes) {
    app.route({
      ...unreadRoute(url, serve),
      method: app.supportedMethods,
      exposeHeadRoute: false,
      // A hook that hijacks does not go on to the next one, and so not to Fastify's own handling of bodies.
      ...(runHostHooks ? {} : { preParsing: serve }),
    })
  }
}

/** Lets Fastify read no body in this plugin. */
export function readNoBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
}

/** Returns a route whose surface reads the body itself. Its plugin must call {@link readNoBodies}. */
export function unreadRoute(
  url: string,
  serve: ServeUnread,
): Pick<RouteOptions, 'url'> & {
  readonly handler: ServeUnread
  readonly errorHandler: NonNullable<RouteOptions['errorHandler']>
} {
  return {
    url,
    handler: serve,
    errorHandler: (error, request, reply) => {
      if (!isUnreadableContentType(error)) throw error
      serve(request, reply)
    },
  }
}

/**
 * Returns true for a content type that Fastify cannot parse. It fails before the parsers run; the endpoint reports
 * the allowed type.
 */
function isUnreadableContentType(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE'
}
