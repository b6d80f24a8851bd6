import type { Broker } from '@signalbox/broker-core'
import type { Connector, NodeHandler, ServeUnread } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'

import { CeEndpoint } from './handler.ts'
import type { CeConnectorOptions } from './options.ts'
import { resolveCeOptions } from './options.ts'
import { CE_ROUTES } from './routes/index.ts'
import type { SubscriptionInfo } from './sse/subscriptions.ts'

/** The CloudEvents endpoint: `/ce/*`. */
export interface CeConnector extends Connector {
  /** Subscriptions that are open now. */
  openStreams(): number
  /** The subscriptions that are open now, one by one. */
  subscriptions(): readonly SubscriptionInfo[]
  /** Commands and queries that subscribers were handed and have not answered. */
  pendingRequests(): number
}

/**
 * Makes the CloudEvents endpoint over a broker, as a Fastify 5 plugin and as a handler for node's HTTP server:
 * `app.register(ceConnector(broker, options).plugin)`. Hooks of the host (CORS, logging, its own checks) run as for any route; bodies go
 * to the endpoint unread. Closing ends waiting receives with an empty result, and settles messages that were handed over.
 * @throws RangeError for an option that is out of range
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
