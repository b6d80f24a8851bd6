import type { Broker } from '@signalbox/broker-core'
import type { FastifyMount } from '@signalbox/http-kit/fastify'
import { served, withPlugin } from '@signalbox/http-kit/fastify'

import { openCeConnector } from './connector.ts'
import type { CeConnector } from './connector.ts'
import type { CeConnectorOptions } from './options.ts'
import { PUSH_PATH } from './push/push-subscriptions.ts'
import { CE_ROUTES } from './routes/index.ts'

/** The CloudEvents endpoint with a Fastify plugin. */
export interface FastifyCeConnector extends CeConnector, FastifyMount {}

/**
 * Returns the CloudEvents endpoint over a broker, with a plugin for Fastify 5 too:
 * `app.register(ceConnector(broker, options).plugin)`. Hooks of the host (CORS, logging, custom checks) run as for any
 * route; the endpoint reads the bodies.
 * @throws RangeError for an option out of range
 */
export function ceConnector(broker: Broker, options: CeConnectorOptions = {}): FastifyCeConnector {
  const { connector, surface, path } = openCeConnector(broker, options)
  const routes = CE_ROUTES.map(
    ({ name }) =>
      [
        `${path}/${name}`,
        served((request, response, headers) => surface.serve(request, response, headers, name)),
      ] as const,
  )
  const byPath = served((request, response, headers) => surface.serve(request, response, headers))
  const push = [`${path}/${PUSH_PATH}`, `${path}/${PUSH_PATH}/*`].map((url) => [url, byPath] as const)
  return withPlugin(connector, [...routes, ...(options.push === undefined ? [] : push)], options)
}
