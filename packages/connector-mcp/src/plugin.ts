import type { Broker } from '@signalbox/broker-core'
import type { Connector, NodeHandler } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import { McpEndpoint } from './handler.ts'
import type { McpConnectorOptions } from './options.ts'
import { resolveMcpOptions } from './options.ts'

/** The MCP endpoint. Its `handler` serves any path: the host routes. */
export interface McpConnector extends Connector {
  /** Returns the number of open GET streams. */
  openStreams(): number
}

/**
 * Returns the MCP endpoint over a broker, as a Fastify 5 plugin and as a handler for Node's HTTP server:
 * `app.register(mcpConnector(broker, options).plugin)`. Hooks of the host (CORS, logging, custom checks) run as for
 * any route; the endpoint reads the bodies. Closing ends waiting receives with an empty result, and settles the
 * messages of written answers.
 * @throws RangeError for an option out of range
 */
export function mcpConnector(broker: Broker, options: McpConnectorOptions = {}): McpConnector {
  const endpoint = new McpEndpoint(broker, resolveMcpOptions(options))
  const handler: NodeHandler = (request, response, headers) => endpoint.handle(request, response, headers)
  const connector = createConnector(
    {
      routes: [[options.path ?? '/mcp', (request, reply) => handler(request.raw, reply.raw, takeOver(reply))]],
      handler,
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return { ...connector, openStreams: () => endpoint.streams.size }
}
