import type { RequestListener } from 'node:http'
import process from 'node:process'

import { closeUnread } from '@signalbox/http-kit/fastify'
import { isFlood } from '@signalbox/http-kit/internal'
import type { ManagementApi } from '@signalbox/management-api/fastify'
import type { FastifyInstance, FastifyReply, FastifyServerOptions } from 'fastify'
import Fastify from 'fastify'

import type { Health } from '../health/health.ts'
import type { Answer, FrontPage } from '../http/answers.ts'
import { frontPageAnswer, NOT_FOUND, PROBES, textAnswer } from '../http/answers.ts'
import { brokenRequestLog } from '../http/request-log.ts'
import type { Logger } from '../logging/logger.ts'
import type { Tls } from '../security/tls.ts'
import { refuseBroken } from './shared-server.ts'

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
    frameworkErrors: (_error, _request, reply) => void sendReply(reply, NOT_FOUND),
    clientErrorHandler: refuseBroken,
    bodyLimit: options.maxBodyBytes,
    forceCloseConnections: 'idle',
    // Fastify's limit of 10 s for a hook would end a shutdown that waits for calls in flight;
    // `drain` has the limit.
    pluginTimeout: 0,
    // Without a custom server, Fastify would listen on a second address of localhost, which no
    // limit counts.
    serverFactory: (handler) => {
      const serve: RequestListener = (request, response) => {
        if (!isFlood(request, response)) handler(request, response)
      }
      return tls?.createServer(timeouts, serve) ?? createServer(timeouts, serve)
    },
  })
  logBrokenRequests(app, options.log)
  addNotFound(app, options.console ? { ...FRONT_PAGE, browsersTo: '/console/' } : FRONT_PAGE)
  addErrors(app, options.log)
  app.addHook('onRequest', (_request, reply, done) => {
    const timer = setTimeout(() => reply.raw.destroy(), timeoutMs)
    timer.unref()
    reply.raw.once('close', () => clearTimeout(timer))
    done()
  })
  for (const [path, probe] of PROBES) app.get(path, async (_request, reply) => sendReply(reply, await probe(health)))
  void app.register(api.plugin)
  return app
}

function refuse(): never {
  throw new TypeError('routes of this server must not have Fastify schemas; the connectors validate requests')
}

/**
 * The Fastify option that disables its schema compilers. Fastify would load Ajv and a serializer
 * for each instance: a hundred files at each start that the server does not use.
 */
const NO_SCHEMAS: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}

/** Logs requests whose connection is closed before their answer is sent, at level debug. */
function logBrokenRequests(app: FastifyInstance, log: Logger): void {
  const watch = brokenRequestLog(log)
  if (watch === undefined) return
  app.addHook('onRequest', (request, reply, done) => {
    watch(request.raw, reply.raw)
    done()
  })
}

/** Answers unknown paths with 404 in plain text, before any other check (S5). The answer at `/` has links. */
function addNotFound(app: FastifyInstance, page: FrontPage): void {
  // In the first hook, so that no body is read and no content type refused for a path that does not
  // exist.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendReply(reply, frontPageAnswer(request, page) ?? NOT_FOUND)
    else done()
  })
  app.setNotFoundHandler((_request, reply) => sendReply(reply, NOT_FOUND))
}

/**
 * Answers errors outside the management API with one line of plain text, without a stack. No answer waits for the rest
 * of a body.
 */
function addErrors(app: FastifyInstance, log: Logger): void {
  closeUnread(app)
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error)
    if (status >= 500) log.error({ err: error }, 'request failed')
    return sendReply(
      reply,
      textAnswer(status, status < 500 && error instanceof Error ? error.message : 'internal error'),
    )
  })
}

function statusOf(error: unknown): number {
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : 500
}

function sendReply(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  return reply
    .code(status)
    .headers(headers)
    .send(body === '' ? undefined : body)
}
