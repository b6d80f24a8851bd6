import type { IncomingMessage } from 'node:http'

import type { Authenticator, TrustedOrigins } from '@signalbox/http-kit'
import { anonymousOperator, AuthenticationError, hasRole, originPolicy } from '@signalbox/http-kit'
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
  /** @default everybody acts as Admin */
  readonly authenticator?: Authenticator
  readonly maxBodyBytes: number
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  /** Milliseconds that a request may take to arrive, and a response to be taken. @default 180000 (specification, "Limits") */
  readonly timeoutMs?: number
}

/** The operators' listener: probes and metrics. */
export function createManagementListener(options: ManagementOptions): FastifyInstance {
  const { health, metrics, authenticator = anonymousOperator, timeoutMs = 180_000 } = options
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
    const status = await refusal(authenticator, request.raw)
    if (status !== undefined) {
      if (status === 401) reply.header('www-authenticate', 'Bearer realm="signalbox"')
      return reply
        .code(status)
        .type('text/plain; charset=utf-8')
        .send(status === 401 ? 'Authentication failed\n' : 'the role ReadOnly is needed\n')
    }
    return reply
      .header('cache-control', 'no-store')
      .type(metrics.contentType)
      .send(await metrics.text())
  })
  return app
}

/** The status to refuse a caller with who may not read (S3). */
async function refusal(authenticator: Authenticator, request: IncomingMessage): Promise<401 | 403 | undefined> {
  try {
    return hasRole(await authenticator.authenticate(request), 'ReadOnly') ? undefined : 403
  } catch (error) {
    if (error instanceof AuthenticationError) return 401
    throw error
  }
}
