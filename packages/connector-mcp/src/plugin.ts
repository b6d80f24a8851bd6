import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

import type { McpHandler } from './handler.ts'
import { createMcpHandler } from './handler.ts'
import type { McpOptions } from './options.ts'

export interface McpConnectorOptions extends McpOptions {
  /** @default '/mcp' */
  readonly path?: string
  /** Milliseconds that calls have to finish when the server closes. @default 5000 */
  readonly drainMs?: number
  /**
   * Whether preValidation and preHandler hooks of the host run on this route. Without them a request is taken over
   * right after the onRequest and preParsing hooks, which saves about a tenth of the CPU of a cheap call. @default true
   */
  readonly lateHooks?: boolean
}

/** A Fastify plugin; `handler` is what it runs on, for gauges and for an end before Fastify's own. */
export type McpConnector = FastifyPluginCallback & { readonly handler: McpHandler }

/**
 * The MCP endpoint as a Fastify 5 plugin: `app.register(mcpConnector(broker, options))`. Hooks of the host (CORS,
 * logging, its own checks) run as for any route; bodies go to the endpoint unread. It closes with the server.
 */
export function mcpConnector(broker: Broker, options: McpConnectorOptions = {}): McpConnector {
  const { path = '/mcp', drainMs, lateHooks = true, ...mcpOptions } = options
  const handler = createMcpHandler(broker, mcpOptions)
  const takeOver = (request: FastifyRequest, reply: FastifyReply): void => {
    const headers = headersSoFar(reply)
    reply.hijack()
    handler(request.raw, reply.raw, headers)
  }
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // The endpoint reads the body itself, after origin and credentials have been checked.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null))
    // A content type that Fastify cannot read does not reach the parsers; the endpoint says what it has to be.
    app.setErrorHandler((error, request, reply) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')) throw error
      takeOver(request, reply)
    })
    app.route({
      method: app.supportedMethods,
      url: path,
      exposeHeadRoute: false,
      handler: takeOver,
      // A hook that hijacks does not go on to the next one, and so not to Fastify's own handling of bodies.
      ...(lateHooks ? {} : { preParsing: takeOver }),
    })
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}

/** What hooks have set, such as CORS headers: Fastify writes none of it on a hijacked reply. */
function headersSoFar(reply: FastifyReply): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {}
  const all = reply.getHeaders()
  for (const name in all) {
    const value = all[name]
    headers[name] = typeof value === 'number' ? String(value) : value
  }
  return headers
}
