import cors from '@fastify/cors'
import type { CorsSettings } from '@signalbox/http-kit'
import { fastifyCorsOptions } from '@signalbox/http-kit'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'

import type { Config } from '../config/schema.ts'

/** Request headers of the protocols that are on. A preflight that asks for one gets it beside the allowed headers. */
export function protocolHeaders({ mcp, a2a }: Config['connectors']): readonly string[] {
  return [
    ...(mcp.enable ? ['Mcp-Method', 'Mcp-Name'] : []),
    ...(a2a.enable ? ['A2A-Version', 'A2A-Extensions', 'X-A2A-Extensions'] : []),
  ]
}

/** A longer list of asked headers is looked at no further, in characters. */
const MAX_ASKED = 2_048

/**
 * CORS on every route (specification, "CORS"), but only for requests that carry an Origin: others, which are the
 * tools and agents that this listener is for, would get headers that nobody reads, and pay for them.
 */
export async function addCors(
  app: FastifyInstance,
  settings: CorsSettings,
  protocolHeaderNames: readonly string[],
): Promise<void> {
  const options = fastifyCorsOptions(settings)
  const delegator = ({ headers }: FastifyRequest, answer: (error: null, chosen: typeof options) => void): void => {
    const asked = headers['access-control-request-headers'] ?? ''
    if (asked === '' || asked.length > MAX_ASKED) {
      answer(null, options)
      return
    }
    const names = new Set(
      asked
        .toLowerCase()
        .split(',')
        .map((name) => name.trim()),
    )
    const more = protocolHeaderNames.filter((name) => names.has(name.toLowerCase()))
    answer(null, more.length === 0 ? options : { ...options, allowedHeaders: [...options.allowedHeaders, ...more] })
  }
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
    cors(forBrowsers, { delegator }, (error) => (error ? reject(error) : resolve()))
  })
}
