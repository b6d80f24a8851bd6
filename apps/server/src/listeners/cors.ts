import cors from '@fastify/cors'
import type { CorsSettings } from '@signalbox/http-kit'
import { fastifyCorsOptions } from '@signalbox/http-kit'
import type { FastifyInstance, onRequestHookHandler } from 'fastify'

/**
 * CORS on every route (specification, "CORS"), but only for requests that carry an Origin: others, which are the
 * tools and agents that this listener is for, would get headers that nobody reads, and pay for them.
 */
export async function addCors(app: FastifyInstance, settings: CorsSettings): Promise<void> {
  const forBrowsers: FastifyInstance = Object.create(app, {
    addHook: {
      value: (name: 'onRequest', hook: onRequestHookHandler) =>
        app.addHook(name, function browsersOnly(request, reply, done) {
          if (request.headers.origin === undefined) done()
          else hook.call(this, request, reply, done)
        }),
    },
  })
  await new Promise<void>((resolve, reject) => {
    cors(forBrowsers, fastifyCorsOptions(settings), (error) => (error ? reject(error) : resolve()))
  })
}
