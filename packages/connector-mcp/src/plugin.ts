import type { Broker } from '@signalbox/broker-core'
import type { Connector, NodeHandler, ServeUnread } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import { McpEndpoint } from './handler.ts'
import { answerMetadata } from './oauth/answer-metadata.ts'
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
  const resolved = resolveMcpOptions(options)
  const endpoint = new McpEndpoint(broker, resolved)
  const { protectedResource: resource } = endpoint
  const handler: NodeHandler = (request, response, headers) => {
    if (resource?.metadataPaths.has(request.url ?? '')) answerMetadata(request, response, resource.metadata, headers)
    else endpoint.handle(request, response, headers)
  }
  const serve: ServeUnread = (request, reply) => handler(request.raw, reply.raw, takeOver(reply))
  const serveMetadata: ServeUnread = (request, reply) => {
    const headers = takeOver(reply)
    answerMetadata(request.raw, reply.raw, resource?.metadata ?? '', headers)
  }
  const connector = createConnector(
    {
      routes: [
        [resolved.path, serve],
        ...[...(resource?.metadataPaths ?? [])].map((path) => [path, serveMetadata] as const),
      ],
      handler,
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return { ...connector, openStreams: () => endpoint.streams.size }
}
