import type { Broker } from '@signalbox/broker-core'
import type { FetchContext } from '@signalbox/http-kit'
import { serveFetch } from '@signalbox/http-kit'

import type { McpConnector } from './connector.ts'
import { openMcpConnector } from './connector.ts'
import type { McpConnectorOptions } from './options.ts'

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
