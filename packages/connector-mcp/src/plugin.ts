import type { Broker } from '@signalbox/broker-core'
import type { Connector, NodeHandler, ServeUnread } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import { CATALOG_PATH, ServerCard } from './card/server-card.ts'
import { McpEndpoint } from './handler.ts'
import { answerMetadata } from './oauth/answer-metadata.ts'
import type { McpConnectorOptions, ResolvedMcpOptions } from './options.ts'
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
  const documents = cardRoutes(resolved)
  const handler: NodeHandler = (request, response, headers) => {
    const { url = '' } = request
    const document = documents.get(url)
    if (document !== undefined) document(request, response, headers)
    else if (resource?.metadataPaths.has(url)) answerMetadata(request, response, resource.metadata, headers)
    else endpoint.handle(request, response, headers)
  }
  const serveMetadata: ServeUnread = (request, reply) => {
    const headers = takeOver(reply)
    answerMetadata(request.raw, reply.raw, resource?.metadata ?? '', headers)
  }
  const connector = createConnector(
    {
      routes: [
        [resolved.path, served(handler)],
        ...[...(resource?.metadataPaths ?? [])].map((path) => [path, serveMetadata] as const),
        ...[...documents].map(([path, document]) => [path, served(document)] as const),
      ],
      handler,
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return { ...connector, openStreams: () => endpoint.streams.size }
}

/** Returns the handlers of the server card and of the catalog, by path; none without a card. */
function cardRoutes({
  card,
  path,
  serverInfo,
  authenticator,
  oauth,
}: ResolvedMcpOptions): ReadonlyMap<string, NodeHandler> {
  if (card === undefined) return new Map()
  // In the OAuth mode a client gets its token from the authorization server.
  const token = authenticator.anonymous !== true && oauth === undefined
  const documents = new ServerCard(card, { path, serverInfo, token })
  return new Map<string, NodeHandler>([
    [documents.cardPath, (request, response, headers) => documents.card(request, response, headers)],
    [CATALOG_PATH, (request, response, headers) => documents.catalog(request, response, headers)],
  ])
}

/** Returns the Fastify handler for a handler of Node. */
function served(handler: NodeHandler): ServeUnread {
  return (request, reply) => handler(request.raw, reply.raw, takeOver(reply))
}
