import type { FastifyInstance } from 'fastify'

import type { Health } from './health.ts'

const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/**
 * Adds `/ping`, `/health` and `/ready`, the same on both listeners.
 */
export function addProbes(app: FastifyInstance, health: Health): void {
  app.get('/ping', async (_request, reply) => reply.headers(HEADERS).type('text/plain; charset=utf-8').send('pong'))

  app.get('/health', async (_request, reply) => {
    const healthy = await health.healthy()
    return reply
      .code(healthy ? 200 : 500)
      .headers(HEADERS)
      .type('text/plain; charset=utf-8')
      .send(healthy ? 'healthy' : 'not healthy')
  })

  app.get('/ready', async (_request, reply) => {
    const state = await health.state()
    return reply
      .code(state.ready ? 200 : 503)
      .headers(HEADERS)
      .send(state)
  })
}
