import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { CardKeys } from '@signalbox/connector-a2a'
import { NO_CARD_KEYS } from '@signalbox/connector-a2a'
import type { PushSubscriptions } from '@signalbox/connector-cloudevents'
import { ceConnector } from '@signalbox/connector-cloudevents/fastify'
import type { McpEvents, TaskOptions } from '@signalbox/connector-mcp'
import { brokerStateKey } from '@signalbox/connector-mcp'
import { mcpConnector } from '@signalbox/connector-mcp/fastify'
import type { Connector } from '@signalbox/http-kit'
import type { Authenticator, FrontDoor } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'

import { agentDirectory } from '../agents/agent-directory.ts'
import { agentRoutes } from '../agents/agent-routes.ts'
import type { Agents } from '../agents/open-agents.ts'
import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/trusted-origins.ts'
import type { Health } from '../health/health.ts'
import { addProbes } from '../health/probes.ts'
import { brokenRequestLog, logBrokenRequests } from '../http/broken-requests.ts'
import { addCors, protocolHeaders } from '../http/cors.ts'
import type { FrontPage } from '../http/front-page.ts'
import { NO_SCHEMAS } from '../http/no-schemas.ts'
import { addPlainErrors, addPlainNotFound, undecodablePath } from '../http/plain-text.ts'
import type { RequestLog } from '../http/request-log.ts'
import { requestFields } from '../http/request-log.ts'
import type { Logger } from '../logging/logger.ts'
import type { ConnectorOperations } from '../management/connector-operations.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { oauthOptions } from '../security/oauth.ts'
import { VERSION } from '../version.ts'
import { serverCard } from './server-card.ts'
import { DirectRoutes } from './direct-routes.ts'
import type { Entrance } from './entrance.ts'

export interface SharedOptions {
  readonly config: Config
  readonly broker: Broker
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  /** Absent if agents are turned off (R10). */
  readonly agents?: Agents | undefined
  /** Webhook subscriptions; absent if webhooks are turned off. */
  readonly push?: PushSubscriptions | undefined
  /** Absent if calls of `/mcp` cannot become tasks. */
  readonly tasks?: TaskOptions | undefined
  /** Absent if `/mcp` has no events. */
  readonly events?: McpEvents | undefined
  readonly authenticator: Authenticator
  /** The keys that sign agent cards. @default none */
  readonly cardKeys?: CardKeys
  /** @default each connector has its own */
  readonly frontDoor?: FrontDoor
  /** The server that answers once the listener is ready and {@link Entrance.open | opened}. */
  readonly entrance: Entrance
  /** @default requests are not logged */
  readonly requests?: RequestLog | undefined
  /** Gets the parts of the connectors that operators use. @default operators have none */
  readonly operations?: ConnectorOperations
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
}

/**
 * Creates the listener for tools and agents: the connectors, and the probes. If a connector cannot
 * be created, the others are closed.
 */
export async function createSharedListener(options: SharedOptions): Promise<FastifyInstance> {
  const { config, entrance, requests, log } = options
  const direct = new DirectRoutes([requests?.begin, brokenRequestLog(log)].filter((before) => before !== undefined))
  const app = Fastify({
    schemaController: NO_SCHEMAS,
    // Fastify would create a child logger for each request. The connectors log failures with more
    // context.
    logger: false,
    frameworkErrors: undecodablePath,
    bodyLimit: config.maxBodyBytes,
    forceCloseConnections: 'idle',
    // Fastify's limit of 10 s for a hook would end a shutdown that waits for calls in flight;
    // `drain` has the limit.
    pluginTimeout: 0,
    serverFactory: (handler) => entrance.prepare(direct.listener(handler)),
  })
  try {
    await addRoutes(app, direct, options)
  } catch (error) {
    await app.close()
    throw error
  }
  return app
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

async function addRoutes(
  app: FastifyInstance,
  direct: DirectRoutes,
  {
    config,
    broker,
    system,
    agents,
    tasks,
    events,
    push,
    authenticator,
    cardKeys = NO_CARD_KEYS,
    frontDoor = {},
    requests,
    operations,
    health,
    metrics,
    log,
  }: SharedOptions,
): Promise<void> {
  const oauth = oauthOptions(config)
  requests?.addTo(app)
  logBrokenRequests(app, log)
  await addCors(app, config.cors, protocolHeaders(config.connectors), oauth !== undefined)
  addPlainNotFound(app, frontPage(config.connectors, agents !== undefined))
  addPlainErrors(app, log)
  addProbes(app, health)

  const { ce, mcp } = config.connectors
  // The remaining time is for the error answers of calls that are still under way.
  const drainMs = config.shutdownSeconds * 900
  const connectors: Connector[] = []
  // All at once: Fastify would close a connector only after the previous one has waited for its
  // last call.
  app.addHook('preClose', async () => {
    await Promise.all(connectors.map((connector) => connector.close(drainMs)))
  })
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
      ...(mcp.responderTools ? { responders: system } : {}),
      // This listener has no such hooks, and a cheap call costs a tenth less without searching for
      // them.
      runHostHooks: false,
      card: serverCard(config.publicUrl),
      stateKey: brokerStateKey(system),
      ...(oauth === undefined ? {} : { oauth }),
      ...(agents === undefined ? {} : { agents: agentDirectory(agents.registry, agents.requests) }),
      ...(tasks === undefined ? {} : { tasks }),
      ...(events === undefined ? {} : { events }),
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
    direct.add('/mcp', connector.handler)
    await app.register(connector.plugin)
  }
  if (ce.enable) {
    const observe = metrics.requestsOf('cloudevents')
    const connector = ceConnector(broker, {
      authenticator,
      trustedOrigins: trustedOrigins(ce.trustedOrigins),
      bindHost: config.http.host,
      frontDoor,
      maxBodyBytes: config.maxBodyBytes,
      system,
      timeoutSeconds: ce.timeoutSeconds,
      maxStreams: ce.maxSseConnections,
      maxSseIdleSeconds: ce.maxSseIdleSeconds,
      ...(push === undefined ? {} : { push }),
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
    direct.add('/ce/', connector.handler)
    await app.register(connector.plugin)
  }
  if (agents !== undefined) {
    const { gateway, routes } = agentRoutes(agents, {
      config,
      broker,
      authenticator,
      cardKeys,
      frontDoor,
      metrics,
      log,
    })
    if (operations !== undefined) {
      operations.streams = gateway.streams
      operations.calls = gateway.calls
    }
    connectors.push(gateway, routes)
    direct.add('/a2a/', gateway.handler)
    await app.register(gateway.plugin)
    await app.register(routes.plugin)
  }
}
