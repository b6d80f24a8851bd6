import type { Connector } from '@signalbox/http-kit'
import { createConnector } from '@signalbox/http-kit/internal'

import type { AgentRegistry } from '../agent-registry.ts'
import { RegistryEndpoints } from './handler.ts'
import type { RegistryRouteOptions } from './route-options.ts'
import { resolveRouteOptions } from './route-options.ts'

/** The registry's endpoints: `/agents` and `/agents/*`. */
export type RegistryRoutes = Connector

/**
 * Creates the registry's endpoints, with a handler for Node's HTTP server:
 * `http.createServer(registryRoutes(registry, options).handler)`. Closing the endpoints leaves the registry open. For
 * Fastify import it from `@signalbox/registry/fastify`.
 * @throws RangeError for an option that is out of range
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryRouteOptions = {}): RegistryRoutes {
  const endpoints = new RegistryEndpoints(registry, resolveRouteOptions(options))
  return createConnector(
    {
      handler: (request, response, headers) => endpoints.handle(request, response, headers),
      close: (graceMs) => endpoints.close(graceMs),
    },
    options,
  )
}
