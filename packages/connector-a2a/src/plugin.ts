import type { Connector, NodeHandler } from '@signalbox/http-kit'
import { createConnector, takeOver } from '@signalbox/http-kit'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { CARD_PATH } from './cards/cards.ts'
import { KEY_SET_PATH } from './cards/sign-card.ts'
import type { A2aDependencies } from './handler.ts'
import { A2aEndpoint } from './handler.ts'
import type { A2aConnectorOptions } from './options.ts'
import { resolveA2aOptions } from './options.ts'
import { encodedTail } from './request-path.ts'

/** The agent gateway: `/a2a/*` and the platform's card. */
export interface A2aConnector extends Connector {
  /** Returns the number of calls and streams under way for an agent from this node. */
  inFlight(agentId: string): number
  /** Returns the number of calls and streams under way for each instance of an agent, by instance_id, from this node. */
  inFlightByInstance(agentId: string): ReadonlyMap<string, number>
  /** Returns the number of streams that are open to clients of this node. */
  openStreams(): number
}

/**
 * The path of a request. The host's router limits the length of `:agent_id` to less than an agent
 * id may have (A13).
 */
interface AnyPath {
  readonly '*'?: string
}

/**
 * Makes the agent gateway, as a Fastify 5 plugin and as a handler for node's HTTP server:
 * `app.register(a2aConnector({ broker, system, registry, requests }, options).plugin)`. From then on this node serves every registered
 * agent; closing ends that. Hooks of the host (CORS, logging, its own checks) run as for any route; bodies go to the gateway unread.
 * @throws RangeError for an option that is out of range
 */
export function a2aConnector(dependencies: A2aDependencies, options: A2aConnectorOptions = {}): A2aConnector {
  const resolved = resolveA2aOptions(options, dependencies.broker.engine.limits.maxMessageBytes)
  const endpoint = new A2aEndpoint(dependencies, resolved)
  const handler: NodeHandler = (request, response, headers) => endpoint.handle(request, response, headers)
  const agent = (request: FastifyRequest, reply: FastifyReply): void => {
    const { '*': path = '' }: AnyPath = Object(request.params)
    const encoded = encodedTail(request.raw, segmentsOf(request.routeOptions.url))
    endpoint.handlePath(path, encoded, request.raw, reply.raw, takeOver(reply))
  }
  const platformCard = (request: FastifyRequest, reply: FastifyReply): void =>
    endpoint.platformCard(request.raw, reply.raw, takeOver(reply))
  const keySet = (request: FastifyRequest, reply: FastifyReply): void =>
    endpoint.keySet(request.raw, reply.raw, takeOver(reply))
  const connector = createConnector(
    {
      routes: [
        ['/a2a', agent],
        // Not a parameter: the host's router bounds the length of those, and answers 404 for a longer one.
        ['/a2a/*', agent],
        [CARD_PATH, platformCard],
        // The host may publish its own keys at this path.
        ...(resolved.cardKeys === undefined ? [] : [[KEY_SET_PATH, keySet] as const]),
      ],
      handler,
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return {
    ...connector,
    inFlight: (agentId) => endpoint.subscribers.inFlight(agentId),
    inFlightByInstance: (agentId) => endpoint.subscribers.inFlightByInstance(agentId),
    openStreams: () => endpoint.gateway.activeStreams,
  }
}

/** Returns the number of segments of a route's URL before its `*`: the host may have a prefix. */
function segmentsOf(url = ''): number {
  return url.split('/').length - 2
}
