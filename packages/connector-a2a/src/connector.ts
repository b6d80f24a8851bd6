import type { AgentDirectory } from '@signalbox/broker-core/ports'
import { checkBroker, checkParts } from '@signalbox/broker-core/internal'
import type { Connector } from '@signalbox/http-kit'
import type { AgentInbox } from '@signalbox/registry'
import { createConnector } from '@signalbox/http-kit/internal'
import type { DocumentedRoute } from '@signalbox/http-kit/internal'

import type { OperatorCalls } from './gateway/operator-calls.ts'
import type { A2aDependencies } from './options.ts'
import { A2aEndpoint } from './handler.ts'
import type { AgentInboxes } from './operators/agent-inboxes.ts'
import type { RunCounts } from './operators/run-counts.ts'
import type { A2aConnectorOptions } from './options.ts'
import { resolveA2aOptions } from './options.ts'
import type { OpenAgentStreams } from './stream/open-streams.ts'

/** The agent gateway: `/a2a/*` and the platform's card. */
export interface A2aConnector extends Connector {
  /** Returns the number of calls and streams under way for an agent from this node. */
  inFlight(agentId: string): number
  /** Returns the number of calls and streams under way for each instance of an agent, by instance_id, from this node. */
  inFlightByInstance(agentId: string): ReadonlyMap<string, number>
  /** Returns the number of streams that are open to clients of this node. */
  openStreams(): number
  /** The streams that are open to clients of this node, for operators. */
  readonly streams: Pick<OpenAgentStreams, 'list' | 'cancel'>
  /** The inboxes of agents, for `registryRoutes`; undefined if `log` is `off`. */
  readonly inbox: AgentInbox | undefined
  /** The inboxes of agents, and the kept events of their tasks, for operators; undefined if `log` is `off`. */
  readonly inboxes: AgentInboxes | undefined
  /** The counts of calls whose answers are kept, since the start of this node. */
  readonly runCounts: RunCounts
  /** Returns the number of these calls in progress on this node. */
  runsInProgress(): number
  /** The agents, for `agents` of `mcpConnector`. */
  readonly directory: AgentDirectory
  /** Calls agents for operators. */
  readonly calls: OperatorCalls
}

const REQUIRED: readonly (keyof A2aDependencies)[] = ['broker', 'system', 'registry', 'requests']

/** A connector with its endpoint, for other hosts than Node's HTTP server. */
export interface OpenA2aConnector {
  readonly connector: A2aConnector
  readonly endpoint: A2aEndpoint
  /** `true` if the gateway signs its cards, and publishes its keys. */
  readonly hasKeys: boolean
}

/**
 * Makes the agent gateway, with a handler for Node's HTTP server:
 * `http.createServer(a2aConnector({ broker, system, registry, requests }, options).handler)`. From then on this node
 * serves every registered agent; closing ends that. For Fastify import it from `@signalbox/connector-a2a/fastify`.
 * @throws RangeError for an option that is out of range
 */
export function a2aConnector(dependencies: A2aDependencies, options: A2aConnectorOptions = {}): A2aConnector {
  return openA2aConnector(dependencies, options).connector
}

/** Returns a connector and its endpoint. */
export function openA2aConnector(dependencies: A2aDependencies, options: A2aConnectorOptions): OpenA2aConnector {
  checkParts('a2aConnector', dependencies, REQUIRED)
  checkBroker('a2aConnector', dependencies.broker)
  const resolved = resolveA2aOptions(options, dependencies.broker.engine.limits.maxMessageBytes)
  const endpoint = new A2aEndpoint(dependencies, resolved)
  const connector = createConnector(
    {
      handler: (request, response, headers) => endpoint.handle(request, response, headers),
      close: (graceMs) => endpoint.close(graceMs),
    },
    options,
  )
  return {
    connector: {
      ...connector,
      inFlight: (agentId) => endpoint.subscribers.inFlight(agentId),
      inFlightByInstance: (agentId) => endpoint.subscribers.inFlightByInstance(agentId),
      openStreams: () => endpoint.gateway.streams.size,
      streams: endpoint.gateway.streams,
      inbox: endpoint.kept.inbox,
      inboxes: endpoint.kept.operatorInboxes,
      runCounts: endpoint.kept.counters,
      runsInProgress: () => endpoint.kept.runs?.inProgress ?? 0,
      directory: endpoint.kept.directory,
      calls: endpoint.gateway.operatorCalls,
    },
    endpoint,
    hasKeys: resolved.cardKeys !== undefined,
  }
}

/**
 * Returns the routes that are not JSON-RPC, for an OpenAPI document: the cards, and with official calls the HTTP+JSON
 * binding. Loads them: a start does not need them.
 */
export async function documentedA2aRoutes({
  native = 'auto',
}: Pick<A2aConnectorOptions, 'native'>): Promise<readonly DocumentedRoute[]> {
  const [{ CARD_ROUTES }, { REST_ROUTES }] = await Promise.all([
    import('./cards/documented-cards.ts'),
    import('./rest/documented-routes.ts'),
  ])
  return native === 'auto' ? [...CARD_ROUTES, ...REST_ROUTES] : CARD_ROUTES
}
