import type { Broker } from '@signalbox/broker-core'
import { addUnreadRoutes, takeOver } from '@signalbox/http-kit'
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
   * Run the preValidation and preHandler hooks of the host on this route. Without them a request is taken over
   * right after the onRequest and preParsing hooks, which saves about a tenth of the CPU of a cheap call. @default true
   */
  readonly runHostHooks?: boolean
}

/** A Fastify plugin; `handler` is what it runs on, for gauges and for an end before Fastify's own. */
export type McpConnector = FastifyPluginCallback & { readonly handler: McpHandler }

/**
 * The MCP endpoint as a Fastify 5 plugin: `app.register(mcpConnector(broker, options))`. Hooks of the host (CORS,
 * logging, its own checks) run as for any route; bodies go to the endpoint unread. It closes with the server.
 */
export function mcpConnector(broker: Broker, options: McpConnectorOptions = {}): McpConnector {
  const { path = '/mcp', drainMs, runHostHooks = true, ...mcpOptions } = options
  const handler = createMcpHandler(broker, mcpOptions)
  const serve = (request: FastifyRequest, reply: FastifyReply): void => {
    const headers = takeOver(reply)
    handler(request.raw, reply.raw, headers)
  }
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    addUnreadRoutes(app, [[path, serve]], { runHostHooks })
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}
