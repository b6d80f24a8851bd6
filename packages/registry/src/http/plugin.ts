import type { Connector, NodeHandler, ServeUnread } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import type { AgentRegistry } from '../agent-registry.ts'
import { RegistryEndpoints } from './handler.ts'
import type { RegistryRouteOptions } from './route-options.ts'
import { resolveRouteOptions } from './route-options.ts'

/** The registry's endpoints: `/agents` and `/agents/*`. */
export type RegistryRoutes = Connector

/**
 * Creates the registry's endpoints, as a Fastify 5 plugin and as a handler for Node's HTTP server:
 * `app.register(registryRoutes(registry, options).plugin)`. The host's hooks (CORS, logging, checks) run as
 * for any route; the endpoints read the bodies themselves. Closing the endpoints leaves the registry open.
 * @throws RangeError for an option that is out of range
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryRouteOptions = {}): RegistryRoutes {
  const endpoints = new RegistryEndpoints(registry, resolveRouteOptions(options))
  const handler: NodeHandler = (request, response, headers) => endpoints.handle(request, response, headers)
  const serve: ServeUnread = (request, reply) => handler(request.raw, reply.raw, takeOver(reply))
  return createConnector(
    {
      // A wildcard, because Fastify limits a named parameter to 100 characters, and an agent_id has up to 128.
      routes: [
        ['/agents', serve],
        ['/agents/*', serve],
      ],
      handler,
      close: (graceMs) => endpoints.close(graceMs),
    },
    options,
  )
}
