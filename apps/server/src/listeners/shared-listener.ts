import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { PushSubscriptions as AgentPushSubscriptions, CardKeys } from '@signalbox/connector-a2a'
import { NO_CARD_KEYS } from '@signalbox/connector-a2a'
import type { PushSubscriptions } from '@signalbox/connector-cloudevents'
import { ceConnector } from '@signalbox/connector-cloudevents'
import type { McpEvents, TaskOptions } from '@signalbox/connector-mcp'
import { brokerStateKey, mcpConnector } from '@signalbox/connector-mcp'
import type { MapReports } from '@signalbox/management-api'
import type { Authenticator, Connector, FrontDoor } from '@signalbox/http-kit'

import { agentRoutes } from '../agents/agent-routes.ts'
import type { Agents } from '../agents/open-agents.ts'
import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/security.ts'
import type { Health } from '../health/health.ts'
import type { FrontPage } from '../http/answers.ts'
import { frontPageAnswer, NOT_FOUND } from '../http/answers.ts'
import { corsOf } from '../http/cors.ts'
import type { RequestLog } from '../http/request-log.ts'
import { brokenRequestLog, requestFields } from '../http/request-log.ts'
import type { Logger } from '../logging/logger.ts'
import type { ConnectorOperations } from '../management/management-api.ts'
import { oauthOptions, serverCard } from '../mcp/options.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { VERSION } from '../version.ts'
import { Router } from './router.ts'
import type { SharedRoutes } from './shared-server.ts'

export interface SharedOptions {
  readonly config: Config
  readonly broker: Broker
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  /** Absent if agents are turned off (R10). */
  readonly agents?: Agents | undefined
  /** Webhook subscriptions; absent if webhooks are turned off. */
  readonly push?: PushSubscriptions | undefined
  /** Webhook subscriptions for push notifications of agents; absent if webhooks are turned off. */
  readonly agentPush?: AgentPushSubscriptions | undefined
  /** Absent if calls of `/mcp` cannot become tasks. */
  readonly tasks?: TaskOptions | undefined
  /** Absent if `/mcp` has no events. */
  readonly events?: McpEvents | undefined
  readonly authenticator: Authenticator
  /** The keys that sign agent cards. @default none */
  readonly cardKeys?: CardKeys
  /** @default each connector has its own */
  readonly frontDoor?: FrontDoor
  /** @default requests are not logged */
  readonly requests?: RequestLog | undefined
  /** Gets the parts of the connectors that operators use. @default operators have none */
  readonly operations?: ConnectorOperations
  /** Counts calls of agents for operators. @default none */
  readonly map?: MapReports
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
}

/** The paths of the gateway's public documents. */
const CARD_PATH = '/.well-known/agent-card.json'
const KEY_SET_PATH = '/.well-known/jwks.json'

/**
 * Creates the connectors for tools and agents, and their routes. If a connector cannot be created, the others are
 * closed.
 */
export async function createSharedRoutes(options: SharedOptions): Promise<SharedRoutes> {
  const { agents, config, health, log, requests } = options
  const page = frontPage(config.connectors, agents !== undefined)
  const router = new Router({
    health,
    log,
    cors: corsOf(config, oauthOptions(config) !== undefined),
    before: [requests?.begin, brokenRequestLog(log)].filter((before) => before !== undefined),
    unknown: (request) => frontPageAnswer(request, page) ?? NOT_FOUND,
  })
  const connectors: Connector[] = []
  // The remaining time is for the error answers of calls that are still under way.
  const drainMs = config.shutdownSeconds * 900
  const close = async (): Promise<void> => {
    await Promise.all(connectors.map((connector) => connector.close(drainMs)))
  }
  try {
    addConnectors(router, connectors, options)
  } catch (error) {
    await close()
    throw error
  }
  return { router, close }
}

/** Returns the answer at `/`, with the connectors that are on. */
function frontPage({ mcp, ce }: Config['connectors'], agents: boolean): FrontPage {
  return {
    title: 'This is the shared listener of Signalbox, for tools, applications and agents',
    entries: [
      ...(mcp.enable ? [{ path: '/mcp', use: 'tools for models (MCP)' }] : []),
      ...(ce.enable ? [{ path: '/ce/', use: 'queues, events, commands and queries (CloudEvents)' }] : []),
      ...(agents
        ? [
            { path: '/agents', use: 'the registered agents' },
            { path: '/a2a/{agent_id}', use: 'calls of agents (A2A)' },
          ]
        : []),
      { path: '/health', use: 'probe: does the store work?' },
      { path: '/ready', use: 'probe: may clients connect?' },
    ],
  }
}

/** Creates the connectors, and adds each to the list. */
function addConnectors(router: Router, connectors: Connector[], options: SharedOptions): void {
  const { config, broker, system, agents, tasks, events, push } = options
  const { authenticator, frontDoor = {}, operations, metrics, log } = options
  const directory = agents && addAgents(router, connectors, agents, options)
  const oauth = oauthOptions(config)
  const { ce, mcp } = config.connectors
  if (mcp.enable) {
    const observe = metrics.requestsOf('mcp')
    const connector = mcpConnector(broker, {
      authenticator,
      trustedOrigins: trustedOrigins(mcp.trustedOrigins),
      bindHost: config.http.host,
      frontDoor,
      maxBodyBytes: config.maxBodyBytes,
      maxStreams: mcp.maxStreams,
      maxAnswerBytes: mcp.maxAnswerBytes,
      toolTimeoutSeconds: mcp.toolTimeoutSeconds,
      settleGraceMs: config.settleGraceMs,
      leases: mcp.leases,
      responders: mcp.responderTools ? system : undefined,
      card: serverCard(config.publicUrl),
      stateKey: brokerStateKey(system),
      oauth,
      agents: directory,
      inboxTools: mcp.inboxTools,
      tasks,
      events,
      serverInfo: { name: 'signalbox', version: VERSION, title: 'Signalbox' },
      hooks: {
        requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
        failed: (error, request) =>
          log.error({ err: error, connector: 'mcp', ...requestFields(request) }, 'MCP connector failed'),
      },
    })
    metrics.watchStreams('mcp', () => connector.openStreams())
    if (operations !== undefined) operations.mcp = connector.operations
    connectors.push(connector)
    const [endpoint = '/mcp', ...documents] = connector.paths
    router.add(endpoint, connector.handler, { refuses: true })
    for (const path of documents) router.add(path, connector.handler)
  }
  if (ce.enable) {
    const observe = metrics.requestsOf('cloudevents')
    const connector = ceConnector(broker, {
      idempotencySeconds: config.connectors.a2a.logSeconds,
      authenticator,
      trustedOrigins: trustedOrigins(ce.trustedOrigins),
      bindHost: config.http.host,
      frontDoor,
      maxBodyBytes: config.maxBodyBytes,
      system,
      timeoutSeconds: ce.timeoutSeconds,
      maxStreams: ce.maxSseConnections,
      maxSseIdleSeconds: ce.maxSseIdleSeconds,
      push,
      settleGraceMs: config.settleGraceMs,
      hooks: {
        requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
        eventsDropped: metrics.eventsDropped,
        failed: (error, request) =>
          log.error(
            { err: error, connector: 'cloudevents', ...requestFields(request) },
            'CloudEvents connector failed',
          ),
      },
    })
    metrics.watchStreams('cloudevents', () => connector.openStreams())
    connectors.push(connector)
    router.add('/ce/', connector.handler, { refuses: true, decoded: true })
  }
}

/** Adds the connectors for agents. Returns the agents as other connectors use them. */
function addAgents(
  router: Router,
  connectors: Connector[],
  agents: Agents,
  { agentPush, operations, ...options }: SharedOptions,
): AgentDirectory {
  const { gateway, routes } = agentRoutes(agents, {
    cardKeys: NO_CARD_KEYS,
    frontDoor: {},
    ...options,
    push: agentPush,
  })
  if (operations !== undefined) {
    operations.streams = gateway.streams
    operations.inboxes = gateway.inboxes
    operations.calls = gateway.calls
  }
  connectors.push(gateway, routes)
  for (const path of ['/a2a', CARD_PATH, KEY_SET_PATH]) router.add(path, gateway.handler)
  router.add('/a2a/', gateway.handler, { refuses: true })
  for (const path of ['/agents', '/agents/']) router.add(path, routes.handler)
  return gateway.directory
}
