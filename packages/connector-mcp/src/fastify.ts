import type { Broker } from '@signalbox/broker-core'
import type { FastifyMount } from '@signalbox/http-kit/fastify'
import { served, withPlugin } from '@signalbox/http-kit/fastify'

import type { McpConnector } from './connector.ts'
import { openMcpConnector } from './connector.ts'
import type { McpConnectorOptions } from './options.ts'

/** The MCP endpoint with a Fastify plugin. */
export interface FastifyMcpConnector extends McpConnector, FastifyMount {}

/**
 * Returns the MCP endpoint over a broker, with a plugin for Fastify 5 too:
 * `app.register(mcpConnector(broker, options).plugin)`. Hooks of the host (CORS, logging, custom checks) run as for any
 * route; the endpoint reads the bodies.
 * @throws RangeError for an option out of range
 */
export function mcpConnector(broker: Broker, options: McpConnectorOptions = {}): FastifyMcpConnector {
  const { connector, routes } = openMcpConnector(broker, options)
  const mounted = routes.map(([path, handler]) => [path, served(handler)] as const)
  return withPlugin(connector, mounted, options)
}
