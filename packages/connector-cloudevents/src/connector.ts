import type { Broker } from '@signalbox/broker-core'
import { checkBroker } from '@signalbox/broker-core/internal'
import type { Connector } from '@signalbox/http-kit'
import { createConnector } from '@signalbox/http-kit'

import { CeEndpoint } from './handler.ts'
import type { CeConnectorOptions } from './options.ts'
import { resolveCeOptions } from './options.ts'
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

/** A connector with its endpoint, for other hosts than Node's HTTP server. */
export interface OpenCeConnector {
  readonly connector: CeConnector
  readonly endpoint: CeEndpoint
  /** The path before the names of the routes. */
  readonly path: string
}

/**
 * Returns the CloudEvents endpoint over a broker, with a handler for Node's HTTP server:
 * `http.createServer(ceConnector(broker, options).handler)`. Closing ends waiting receives with an empty result, and
 * settles the messages of written answers. For Fastify import it from `@signalbox/connector-cloudevents/fastify`.
 * @throws RangeError for an option out of range
 */
export function ceConnector(broker: Broker, options: CeConnectorOptions = {}): CeConnector {
  return openCeConnector(broker, options).connector
}

/** Returns a connector and its endpoint. */
export function openCeConnector(broker: Broker, options: CeConnectorOptions): OpenCeConnector {
  checkBroker('ceConnector', broker)
  const resolved = resolveCeOptions(options)
  const endpoint = new CeEndpoint(broker, resolved)
  const { pending, subscriptions } = endpoint.environment
  const connector = createConnector(
    {
      handler: (request, response, headers) => endpoint.handle(undefined, request, response, headers),
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return {
    connector: {
      ...connector,
      openStreams: () => subscriptions.size,
      subscriptions: () => subscriptions.list(),
      pendingRequests: () => pending.size,
    },
    endpoint,
    path: resolved.path,
  }
}
