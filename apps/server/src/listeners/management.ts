import { originPolicy } from '@signalbox/http-kit'
import type { TrustedOrigins } from '@signalbox/http-kit'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'

import type { Health } from '../health.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { addPlainErrors, addPlainNotFound, undecodablePath } from './plain-text.ts'
import { addProbes } from './probes.ts'

export interface ManagementOptions {
  readonly host: string
  readonly trustedOrigins: TrustedOrigins
  readonly maxBodyBytes: number
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  /** Milliseconds that a request may take to arrive, and a response to be taken. @default 180000 (specification, "Limits") */
  readonly timeoutMs?: number
}

/** The operators' listener: probes and metrics. */
export function createManagementListener(options: ManagementOptions): FastifyInstance {
  const { health, metrics, timeoutMs = 180_000 } = options
  const app = Fastify({
    logger: false,
    frameworkErrors: undecodablePath,
    bodyLimit: options.maxBodyBytes,
    requestTimeout: timeoutMs,
    forceCloseConnections: 'idle',
    http: { headersTimeout: Math.min(timeoutMs, 15_000), connectionsCheckingInterval: Math.min(timeoutMs, 5_000) },
  })
  addPlainNotFound(app)
  addPlainErrors(app, options.log)
  app.addHook('onRequest', (_request, reply, done) => {
    const timer = setTimeout(() => reply.raw.destroy(), timeoutMs)
    timer.unref()
    reply.raw.once('close', () => clearTimeout(timer))
    done()
  })
  addProbes(app, health)

  // Probes are public; what tells more is not for pages of other origins (S6).
  const trusted = originPolicy(options.trustedOrigins, { bindHost: options.host })
  app.get('/metrics', async (request, reply) => {
    if (!trusted(request.headers.origin)) {
      return reply.code(403).type('text/plain; charset=utf-8').send('origin not allowed\n')
    }
    return reply
      .header('cache-control', 'no-store')
      .type(metrics.contentType)
      .send(await metrics.text())
  })
  return app
}
