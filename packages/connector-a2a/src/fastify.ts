import type { FastifyMount, ServeUnread } from '@signalbox/http-kit/fastify'
import { served, takeOver, withPlugin } from '@signalbox/http-kit/fastify'

import { KEY_SET_PATH } from './cards/card-keys.ts'
import { CARD_PATH } from './cards/cards.ts'
import type { A2aConnector } from './connector.ts'
import { openA2aConnector } from './connector.ts'
import type { A2aDependencies } from './options.ts'
import type { A2aConnectorOptions } from './options.ts'
import { encodedTail } from './request-path.ts'

/** The agent gateway with a Fastify plugin. */
export interface FastifyA2aConnector extends A2aConnector, FastifyMount {}

/**
 * The path of a request. The host's router limits the length of `:agent_id` to less than an agent
 * id may have (A13).
 */
interface AnyPath {
  readonly '*'?: string
}

/**
 * Makes the agent gateway, with a plugin for Fastify 5 too:
 * `app.register(a2aConnector({ broker, system, registry, requests }, options).plugin)`. Hooks of the host (CORS, logging,
 * its own checks) run as for any route; bodies go to the gateway unread.
 * @throws RangeError for an option that is out of range
 */
export function a2aConnector(dependencies: A2aDependencies, options: A2aConnectorOptions = {}): FastifyA2aConnector {
  const { connector, endpoint, hasKeys } = openA2aConnector(dependencies, options)
  const agent: ServeUnread = (request, reply) => {
    const { '*': path = '' }: AnyPath = Object(request.params)
    const encoded = encodedTail(request.raw, segmentsOf(request.routeOptions.url))
    endpoint.handlePath(path, encoded, request.raw, reply.raw, takeOver(reply))
  }
  const rootCard = served((request, response, headers) => endpoint.rootCard(request, response, headers))
  const keySet = served((request, response, headers) => endpoint.keySet(request, response, headers))
  return withPlugin(
    connector,
    [
      ['/a2a', agent],
      // Not a parameter: the host's router bounds the length of those, and answers 404 for a longer one.
      ['/a2a/*', agent],
      [CARD_PATH, rootCard],
      // The host may publish its own keys at this path.
      ...(hasKeys ? [[KEY_SET_PATH, keySet] as const] : []),
    ],
    options,
  )
}

/** Returns the number of segments of a route's URL before its `*`: the host may have a prefix. */
function segmentsOf(url = ''): number {
  return url.split('/').length - 2
}
