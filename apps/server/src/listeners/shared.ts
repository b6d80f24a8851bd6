import type { ServerOptions } from 'node:http'
import { createServer } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { cloudeventsConnector } from '@signalbox/connector-cloudevents'
import { mcpConnector } from '@signalbox/connector-mcp'
import type { Authenticator, FrontDoor } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyServerFactory } from 'fastify'
import Fastify from 'fastify'

import { agentDirectory } from '../agent-directory.ts'
import type { Agents } from '../agents.ts'
import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/trusted-origins.ts'
import type { Health } from '../health.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { RequestLog } from '../request-log.ts'
import { requestFields } from '../request-log.ts'
import type { Tls } from '../security/tls.ts'
import { VERSION } from '../version.ts'
import { agentRoutes } from './agents.ts'
import { addCors, protocolHeaders } from './cors.ts'
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
  /** For the broker's own channels. */
  readonly system: BrokerHandle
  /** Left out: no agents (R10). */
  readonly agents?: Agents | undefined
  readonly authenticator: Authenticator
  /** @default each connector has its own */
  readonly frontDoor?: FrontDoor
  /** @default plain TCP */
  readonly tls?: Tls | undefined
  /** @default requests are not logged */
  readonly requests?: RequestLog | undefined
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  readonly timeouts?: Timeouts
}

/** The listener for tools and agents: the connectors, and the probes. */
export async function createSharedListener({
  config,
  broker,
  system,
  agents,
  authenticator,
  frontDoor = {},
  tls,
  requests,
  health,
  metrics,
  log,
  timeouts = TIMEOUTS,
}: SharedOptions): Promise<FastifyInstance> {
  const http: ServerOptions = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: Math.min(timeouts.headersMs, 5_000),
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
  }
  const serverFactory: FastifyServerFactory = (handler) =>
    tls?.createServer(http, handler) ?? createServer(http, handler)
  const app = Fastify({
    // Fastify would make a child logger for each request; what fails is logged by those who know what it was.
    logger: false,
    frameworkErrors: undecodablePath,
    bodyLimit: config.maxBodyBytes,
    forceCloseConnections: 'idle',
    // Fastify's limit of 10 s for a hook would end a shutdown that waits for calls in flight; `drain` has the limit.
    pluginTimeout: 0,
    serverFactory,
  })
  requests?.addTo(app)
  await addCors(app, config.cors, protocolHeaders(config.connectors))
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
      authenticator,
      trustedOrigins: trustedOrigins(mcp.trustedOrigins),
      bindHost: config.http.host,
      frontDoor,
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
        failed: (error, request) =>
          log.error({ err: error, connector: 'mcp', ...requestFields(request) }, 'MCP connector: something failed'),
      },
    })
    metrics.watchStreams('mcp', () => connector.handler.openStreams())
    connectors.push(connector)
    await app.register(connector)
  }
  if (ce.enable) {
    const observe = metrics.requestsOf('cloudevents')
    const connector = cloudeventsConnector(broker, {
      authenticator,
      trustedOrigins: trustedOrigins(ce.trustedOrigins),
      bindHost: config.http.host,
      frontDoor,
      maxBodyBytes: config.maxBodyBytes,
      system,
      timeoutSeconds: ce.timeoutSeconds,
      maxSseConnections: ce.maxSseConnections,
      maxSseIdleSeconds: ce.maxSseIdleSeconds,
      settleGraceMs: config.settleGraceMs,
      hooks: {
        requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
        eventsDropped: metrics.eventsDropped,
        failed: (error, request) =>
          log.error(
            { err: error, connector: 'cloudevents', ...requestFields(request) },
            'CloudEvents connector: something failed',
          ),
      },
    })
    metrics.watchStreams('cloudevents', () => connector.handler.openStreams())
    connectors.push(connector)
    await app.register(connector)
  }
  if (agents !== undefined) {
    const { gateway, routes } = agentRoutes(agents, { config, broker, authenticator, frontDoor, metrics, log })
    connectors.push(gateway, routes)
    await app.register(gateway)
    await app.register(routes)
  }
  return app
}
