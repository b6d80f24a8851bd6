import process from 'node:process'

import type { ManagementApi } from '@signalbox/management-api/fastify'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'

import type { Health } from '../health/health.ts'
import { addProbes } from '../health/probes.ts'
import { logBrokenRequests } from '../http/broken-requests.ts'
import type { FrontPage } from '../http/front-page.ts'
import { NO_SCHEMAS } from '../http/no-schemas.ts'
import { addPlainErrors, addPlainNotFound, undecodablePath } from '../http/plain-text.ts'
import type { Logger } from '../logging/logger.ts'
import type { Tls } from '../security/tls.ts'

// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const { createServer } = process.getBuiltinModule('node:http')

export interface ManagementListenerOptions {
  readonly maxBodyBytes: number
  readonly health: Health
  readonly api: ManagementApi
  readonly log: Logger
  /** `true` if browsers find the console at `/`. @default false */
  readonly console?: boolean
  /** @default plain TCP */
  readonly tls?: Tls | undefined
  /**
   * The time for a request to arrive, and for a response to be read, in ms. @default 180000
   */
  readonly timeoutMs?: number
}

/** The answer at `/`. */
const FRONT_PAGE: FrontPage = {
  title: 'This is the management listener of Signalbox, for operators',
  entries: [
    { path: '/api/snapshot', use: 'the current state' },
    { path: '/api/stats/queues', use: 'the queues' },
    { path: '/metrics', use: 'metrics for Prometheus' },
    { path: '/openapi.json', use: 'every route of both listeners' },
    { path: '/health', use: 'probe: does the store work?' },
    { path: '/ready', use: 'probe: may clients connect?' },
  ],
}

/** Creates the operators' listener: probes, and the management API. */
export function createManagementListener(options: ManagementListenerOptions): FastifyInstance {
  const { health, api, tls, timeoutMs = 180_000 } = options
  const timeouts = {
    requestTimeout: timeoutMs,
    headersTimeout: Math.min(timeoutMs, 15_000),
    keepAliveTimeout: 72_000,
    connectionsCheckingInterval: Math.min(timeoutMs, 5_000),
  }
  const app = Fastify({
    schemaController: NO_SCHEMAS,
    logger: false,
    frameworkErrors: undecodablePath,
    bodyLimit: options.maxBodyBytes,
    forceCloseConnections: 'idle',
    // Fastify's limit of 10 s for a hook would end a shutdown that waits for calls in flight;
    // `drain` has the limit.
    pluginTimeout: 0,
    // Without a custom server, Fastify would listen on a second address of localhost, which no
    // limit counts.
    serverFactory: (handler) => tls?.createServer(timeouts, handler) ?? createServer(timeouts, handler),
  })
  logBrokenRequests(app, options.log)
  addPlainNotFound(app, options.console ? { ...FRONT_PAGE, browsersTo: '/console/' } : FRONT_PAGE)
  addPlainErrors(app, options.log)
  app.addHook('onRequest', (_request, reply, done) => {
    const timer = setTimeout(() => reply.raw.destroy(), timeoutMs)
    timer.unref()
    reply.raw.once('close', () => clearTimeout(timer))
    done()
  })
  addProbes(app, health)
  void app.register(api.plugin)
  return app
}
