import type { Broker } from '@signalbox/broker-core'
import { checkBroker } from '@signalbox/broker-core/internal'
import type { Connector, FetchContext, HttpHandler } from '@signalbox/http-kit'
import { serveFetch } from '@signalbox/http-kit'
import { createConnector } from '@signalbox/http-kit/internal'
import type { DocumentedRoute } from '@signalbox/http-kit/internal'

import { McpEndpoint } from './handler.ts'
import { answerMetadata } from './oauth.ts'
import type { McpOperations } from './operations.ts'
import type { McpConnectorOptions, ResolvedMcpOptions } from './options.ts'
import { resolveMcpOptions } from './options.ts'
import { CATALOG_PATH, ServerCard } from './server-card.ts'

/** The MCP endpoint. Its `handler` serves any path: the host routes. */
export interface McpConnector extends Connector {
  /** Returns the number of open GET streams. */
  openStreams(): number
  /** The tools and tasks, for operators. */
  readonly operations: McpOperations
  /** The paths for a host that routes: the endpoint, then the public documents. */
  readonly paths: readonly string[]
}

/** A connector with the parts that other hosts than Node's HTTP server mount. */
interface OpenMcpConnector {
  readonly connector: McpConnector
  /** Serves any path. */
  readonly handler: HttpHandler
  readonly routes: readonly (readonly [path: string, handler: HttpHandler])[]
}

/**
 * Returns the MCP endpoint over a broker, with a handler for Node's HTTP server and for frameworks on it:
 * `http.createServer(mcpConnector(broker, options).handler)`. Closing ends waiting receives with an empty result, and
 * settles the messages of written answers. For Fastify import it from `@signalbox/connector-mcp/fastify`; hosts in the
 * style of fetch mount {@link createMcpFetchHandler}.
 * @throws RangeError for an option out of range
 */
export function mcpConnector(broker: Broker, options: McpConnectorOptions = {}): McpConnector {
  return openMcpConnector(broker, options).connector
}

/** Returns a connector and its routes. */
export function openMcpConnector(broker: Broker, options: McpConnectorOptions): OpenMcpConnector {
  checkBroker('mcpConnector', broker)
  const resolved = resolveMcpOptions(options)
  const endpoint = new McpEndpoint(broker, resolved)
  const documents = documentsOf(endpoint, resolved)
  const serve: HttpHandler = (request, response, headers) => endpoint.handle(request, response, headers)
  const handler: HttpHandler = (request, response, headers) => {
    const document = documents.get(pathOf(request.url)) ?? serve
    document(request, response, headers)
  }
  const connector = createConnector({ handler, close: (graceMs) => endpoint.close(graceMs) }, options)
  return {
    connector: {
      ...connector,
      openStreams: () => endpoint.streams.size,
      operations: endpoint.operations,
      paths: [resolved.path, ...documents.keys()],
    },
    handler,
    routes: [[resolved.path, serve], ...documents],
  }
}

function pathOf(url = ''): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}

/** Returns the handlers of public documents by path: of the OAuth metadata, the server card and the catalog. */
function documentsOf(
  { protectedResource: resource }: McpEndpoint,
  { card, path, serverInfo, authenticator, oauth }: ResolvedMcpOptions,
): ReadonlyMap<string, HttpHandler> {
  const documents = new Map<string, HttpHandler>()
  for (const metadataPath of resource?.metadataPaths ?? []) {
    documents.set(metadataPath, (request, response, headers) =>
      answerMetadata(request, response, resource?.metadata ?? '', headers),
    )
  }
  if (card === undefined) return documents
  // In the OAuth mode a client gets its token from the authorization server.
  const token = authenticator.anonymous !== true && oauth === undefined
  const server = new ServerCard(card, { path, serverInfo, token })
  documents.set(server.cardPath, (request, response, headers) => server.card(request, response, headers))
  documents.set(CATALOG_PATH, (request, response, headers) => server.catalog(request, response, headers))
  return documents
}

/** The MCP endpoint for hosts in the style of fetch. It serves any path: the host routes. */
export interface McpFetchHandler extends Pick<McpConnector, 'close' | 'openStreams'>, AsyncDisposable {
  /**
   * Answers a request. Rejects only for a value that is not a Request, and for a request whose body was read and is not
   * in the context.
   */
  (request: Request, context?: FetchContext): Promise<Response>
}

/**
 * Returns the MCP endpoint over a broker for hosts in the style of fetch, such as Bun, Hono and route handlers of
 * Next.js: `Bun.serve({ fetch: (request) => handler(request) })`. Waiting calls and streams end when the host aborts
 * the request's signal or cancels the body of the answer. Close the handler before the server.
 * @throws RangeError for an option out of range
 */
export function createMcpFetchHandler(broker: Broker, options: McpConnectorOptions = {}): McpFetchHandler {
  const { connector, handler } = openMcpConnector(broker, options)
  const answer = (request: Request, context?: FetchContext): Promise<Response> => serveFetch(handler, request, context)
  return Object.assign(answer, {
    close: (graceMs?: number) => connector.close(graceMs),
    openStreams: () => connector.openStreams(),
    [Symbol.asyncDispose]: () => connector[Symbol.asyncDispose](),
  })
}

/**
 * Returns the routes that are not JSON-RPC, for an OpenAPI document: the cards, and those of the OAuth mode. Loads them:
 * a start does not need them.
 */
export async function documentedMcpRoutes({ oauth }: { readonly oauth: boolean }): Promise<readonly DocumentedRoute[]> {
  const { CARD_ROUTES, OAUTH_ROUTES } = await import('./documented-routes.ts')
  return oauth ? [...CARD_ROUTES, ...OAUTH_ROUTES] : CARD_ROUTES
}
