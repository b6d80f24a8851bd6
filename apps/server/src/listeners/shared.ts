import type { Broker } from '@signalbox/broker-core'
import { cloudeventsConnector } from '@signalbox/connector-cloudevents'
import { mcpConnector } from '@signalbox/connector-mcp'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'

import { agentDirectory } from '../agent-directory.ts'
import type { Agents } from '../agents.ts'
import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/trusted-origins.ts'
import type { Health } from '../health.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { VERSION } from '../version.ts'
import { agentRoutes } from './agents.ts'
import { addCors } from './cors.ts'
import { addPlainErrors, addPlainNotFound, undecodablePath } from './plain-text.ts'
import { addProbes } from './probes.ts'

/**
 * How long a client may take to send, in milliseconds. Nothing bounds the time that an answer takes: long polls last a
 * minute, commands an hour, streams for good. A peer that vanished is found by TCP keepalive instead.
 */
export interface Timeouts {
  /** For the head of a request. */
  readonly headersMs: number
  /** For all of it. */
  readonly requestMs: number
  /** Between two requests on a connection. */
  readonly keepAliveMs: number
}

const TIMEOUTS: Timeouts = { headersMs: 15_000, requestMs: 120_000, keepAliveMs: 75_000 }
const TCP_KEEPALIVE_MS = 30_000

export interface SharedOptions {
  readonly config: Config
  readonly broker: Broker
  /** Left out: no agents (R10). */
  readonly agents?: Agents | undefined
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  readonly timeouts?: Timeouts
}

/** The listener for tools and agents: the connectors, and the probes. */
export async function createSharedListener({
  config,
  broker,
  agents,
  health,
  metrics,
  log,
  timeouts = TIMEOUTS,
}: SharedOptions): Promise<FastifyInstance> {
  const app = Fastify({
    // Fastify would make a child logger for each request; what fails is logged by those who know what it was.
    logger: false,
    frameworkErrors: undecodablePath,
    bodyLimit: config.maxBodyBytes,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    forceCloseConnections: 'idle',
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: Math.min(timeouts.headersMs, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEPALIVE_MS,
    },
  })
  await addCors(app, config.cors)
  addPlainNotFound(app)
  addPlainErrors(app, log)
  addProbes(app, health)

  const { ce, mcp } = config.connectors
  // What is left of the time is for telling those whose calls are still not done.
  const drainMs = config.shutdownSeconds * 900
  const connectors: { readonly handler: { close(graceMs: number): Promise<void> } }[] = []
  // All of them at once: Fastify would close the next one when the one before has waited for its last call.
  app.addHook('preClose', async () => {
    await Promise.all(connectors.map(({ handler }) => handler.close(drainMs)))
  })
  if (mcp.enable) {
    const observe = metrics.requestsOf('mcp')
    const connector = mcpConnector(broker, {
      trustedOrigins: trustedOrigins(mcp.trustedOrigins),
      bindHost: config.http.host,
      maxBodyBytes: config.maxBodyBytes,
      maxStreams: mcp.maxStreams,
      toolTimeoutSeconds: mcp.toolTimeoutSeconds,
      settleGraceMs: config.settleGraceMs,
      // This listener has no such hooks, and a cheap call costs a tenth less without looking for them.
      lateHooks: false,
      ...(agents === undefined ? {} : { agents: agentDirectory(agents.registry, agents.requests) }),
      serverInfo: { name: 'signalbox', version: VERSION, title: 'Signalbox' },
      hooks: {
        requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
        failed: (error) => log.error({ err: error, connector: 'mcp' }, 'MCP connector: something failed'),
      },
    })
    metrics.watchStreams('mcp', () => connector.handler.openStreams())
    connectors.push(connector)
    await app.register(connector)
  }
  if (ce.enable) {
    const observe = metrics.requestsOf('cloudevents')
    const connector = cloudeventsConnector(broker, {
      trustedOrigins: trustedOrigins(ce.trustedOrigins),
      bindHost: config.http.host,
      maxBodyBytes: config.maxBodyBytes,
      timeoutSeconds: ce.timeoutSeconds,
      maxSseConnections: ce.maxSseConnections,
      maxSseIdleSeconds: ce.maxSseIdleSeconds,
      settleGraceMs: config.settleGraceMs,
      hooks: {
        requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
        eventsDropped: metrics.eventsDropped,
        failed: (error) =>
          log.error({ err: error, connector: 'cloudevents' }, 'CloudEvents connector: something failed'),
      },
    })
    metrics.watchStreams('cloudevents', () => connector.handler.openStreams())
    connectors.push(connector)
    await app.register(connector)
  }
  if (agents !== undefined) {
    const { gateway, routes } = agentRoutes(agents, config, broker, metrics, log)
    connectors.push(gateway, routes)
    await app.register(gateway)
    await app.register(routes)
  }
  return app
}
