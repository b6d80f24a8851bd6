import type { Broker } from '@signalbox/broker-core'
import { checkBroker } from '@signalbox/broker-core/internal'
import type { Connector } from '@signalbox/http-kit'
import { createConnector } from '@signalbox/http-kit'

import { CeSurface } from './handler.ts'
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

/** A connector with its surface, for other hosts than Node's HTTP server. */
export interface OpenCeConnector {
  readonly connector: CeConnector
  readonly surface: CeSurface
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

/** Returns a connector and its surface. */
export function openCeConnector(broker: Broker, options: CeConnectorOptions): OpenCeConnector {
  checkBroker('ceConnector', broker)
  const resolved = resolveCeOptions(options)
  const surface = new CeSurface(broker, resolved)
  const { pending, subscriptions } = surface.environment
  const connector = createConnector(
    {
      handler: (request, response, headers) => surface.serve(request, response, headers),
      close: (graceMs) => surface.close(graceMs),
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
    surface,
    path: resolved.path,
  }
}
