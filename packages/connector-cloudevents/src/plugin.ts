import type { Broker } from '@signalbox/broker-core'
import type { Connector, NodeHandler, ServeUnread } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import { CeEndpoint } from './handler.ts'
import type { CeConnectorOptions } from './options.ts'
import { resolveCeOptions } from './options.ts'
import { CE_ROUTES } from './routes/index.ts'
import type { SubscriptionInfo } from './sse/subscriptions.ts'

/** The CloudEvents endpoint at `/ce/*`. */
export interface CeConnector extends Connector {
  /** Returns the number of open subscriptions. */
  openStreams(): number
  /** Returns the open subscriptions. */
  subscriptions(): readonly SubscriptionInfo[]
  /** Returns the number of commands and queries that subscribers received and have not answered. */
  pendingRequests(): number
}

/**
 * Returns the CloudEvents endpoint over a broker, as a Fastify 5 plugin and as a handler for Node's HTTP server:
 * `app.register(ceConnector(broker, options).plugin)`. Hooks of the host (CORS, logging, custom checks) run as for
 * any route; the endpoint reads the bodies. Closing ends waiting receives with an empty result, and settles the
 * messages of written answers.
 * @throws RangeError for an option out of range
 */
export function ceConnector(broker: Broker, options: CeConnectorOptions = {}): CeConnector {
  const resolved = resolveCeOptions(options)
  const endpoint = new CeEndpoint(broker, resolved)
  const handler: NodeHandler = (request, response, headers) => endpoint.handle(undefined, request, response, headers)
  const { pending, subscriptions } = endpoint.environment
  const connector = createConnector(
    {
      routes: CE_ROUTES.map(({ name }): [string, ServeUnread] => [
        `${resolved.path}/${name}`,
        (request, reply) => endpoint.handle(name, request.raw, reply.raw, takeOver(reply)),
      ]),
      handler,
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return {
    ...connector,
    openStreams: () => subscriptions.size,
    subscriptions: () => subscriptions.list(),
    pendingRequests: () => pending.size,
  }
}
