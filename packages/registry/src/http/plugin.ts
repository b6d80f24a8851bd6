import { addUnreadRoutes, takeOver } from '@signalbox/http-kit'
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

import type { AgentRegistry } from '../agent-registry.ts'
import type { RegistryHandler } from './handler.ts'
import { createRegistryHandler } from './handler.ts'
import type { RegistryRouteOptions } from './route-options.ts'

export interface RegistryPluginOptions extends RegistryRouteOptions {
  /** The time that running calls have to finish when the server closes, in milliseconds. @default 5000 */
  readonly drainMs?: number
}

/** A Fastify plugin. Use `handler` to close the endpoints before Fastify itself closes. */
export type RegistryRoutes = FastifyPluginCallback & { readonly handler: RegistryHandler }

/**
 * Creates a Fastify 5 plugin with the registry's endpoints: `app.register(registryRoutes(registry,
 * options))`. The host's hooks (CORS, logging, checks) run as for any route; the endpoints read the bodies
 * themselves. The plugin does not close the registry.
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryPluginOptions = {}): RegistryRoutes {
  const { drainMs, ...routeOptions } = options
  const handler = createRegistryHandler(registry, routeOptions)
  const serve = (request: FastifyRequest, reply: FastifyReply): void => {
    const headers = takeOver(reply)
    handler(request.raw, reply.raw, headers)
  }
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // A wildcard, because Fastify limits a named parameter to 100 characters, and an agent_id has up to 128.
    addUnreadRoutes(app, [
      ['/agents', serve],
      ['/agents/*', serve],
    ])
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}
