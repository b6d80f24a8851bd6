import type { Broker } from '@signalbox/broker-core'
import { addUnreadRoutes, takeOver } from '@signalbox/http-kit'
import type { ServeUnread } from '@signalbox/http-kit'
import type { FastifyPluginCallback } from 'fastify'

import type { CeHandler } from './handler.ts'
import { createCeHandler } from './handler.ts'
import type { CeOptions } from './options.ts'
import { CE_ROUTES } from './routes/index.ts'

export interface CloudEventsConnectorOptions extends CeOptions {
  /** Milliseconds that calls have to finish when the server closes. @default 5000 */
  readonly drainMs?: number
}

/** A Fastify plugin; `handler` is what it runs on, for gauges and for an end before Fastify's own. */
export type CloudEventsConnector = FastifyPluginCallback & { readonly handler: CeHandler }

/**
 * The CloudEvents endpoint as a Fastify 5 plugin: `app.register(cloudeventsConnector(broker, options))`. Hooks of the host
 * (CORS, logging, its own checks) run as for any route; bodies go to the endpoint unread. It closes with the server.
 */
export function cloudeventsConnector(broker: Broker, options: CloudEventsConnectorOptions = {}): CloudEventsConnector {
  const { drainMs, ...ceOptions } = options
  const handler = createCeHandler(broker, ceOptions)
  const { path = '/ce' } = ceOptions
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    const routes = CE_ROUTES.map(({ name }): [string, ServeUnread] => [
      `${path}/${name}`,
      (request, reply) => {
        const headers = takeOver(reply)
        handler.handleRoute(name, request.raw, reply.raw, headers)
      },
    ])
    addUnreadRoutes(app, routes)
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}
