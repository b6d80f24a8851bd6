import type { FastifyMount } from '@signalbox/http-kit/fastify'
import { takeOver, withPlugin } from '@signalbox/http-kit/fastify'
import type { ServeUnread } from '@signalbox/http-kit/fastify'

import type { AgentRegistry } from './agent-registry.ts'
import type { RegistryRoutes } from './http/connector.ts'
import { registryRoutes as openRoutes } from './http/connector.ts'
import type { RegistryRouteOptions } from './http/route-options.ts'

/** The registry's endpoints with a Fastify plugin. */
export interface FastifyRegistryRoutes extends RegistryRoutes, FastifyMount {}

/**
 * Creates the registry's endpoints, with a plugin for Fastify 5 too: `app.register(registryRoutes(registry, options).plugin)`.
 * The host's hooks (CORS, logging, checks) run as for any route; the endpoints read the bodies themselves. Closing the
 * endpoints leaves the registry open.
 * @throws RangeError for an option that is out of range
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryRouteOptions = {}): FastifyRegistryRoutes {
  const routes = openRoutes(registry, options)
  const serve: ServeUnread = (request, reply) => routes.handler(request.raw, reply.raw, takeOver(reply))
  return withPlugin(
    routes,
    // A wildcard, because Fastify limits a named parameter to 100 characters, and an agent_id has up to 128.
    [
      ['/agents', serve],
      ['/agents/*', serve],
    ],
    options,
  )
}
