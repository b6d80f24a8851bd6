import { addUnreadRoutes, takeOver } from '@signalbox/http-kit'
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

import type { AgentRegistry } from '../agent-registry.ts'
import type { RegistryHandler } from './handler.ts'
import { createRegistryHandler } from './handler.ts'
import type { RegistryRouteOptions } from './route-options.ts'

export interface RegistryPluginOptions extends RegistryRouteOptions {
  /** Milliseconds that calls have to finish when the server closes. @default 5000 */
  readonly drainMs?: number
}

/** A Fastify plugin; `handler` is what it runs on, for an end before Fastify's own. */
export type RegistryRoutes = FastifyPluginCallback & { readonly handler: RegistryHandler }

/**
 * The registry's endpoints as a Fastify 5 plugin: `app.register(registryRoutes(registry, options))`. Hooks of the host (CORS,
 * logging, its own checks) run as for any route; bodies go to the endpoints unread. The registry itself is closed by its owner.
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryPluginOptions = {}): RegistryRoutes {
  const { drainMs, ...routeOptions } = options
  const handler = createRegistryHandler(registry, routeOptions)
  const serve = (request: FastifyRequest, reply: FastifyReply): void => {
    const headers = takeOver(reply)
    handler(request.raw, reply.raw, headers)
  }
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // A wildcard, because Fastify gives a named parameter 100 characters, and an agent_id has up to 128.
    addUnreadRoutes(app, [
      ['/agents', serve],
      ['/agents/*', serve],
    ])
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}
