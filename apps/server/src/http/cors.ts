import cors from '@fastify/cors'
import { METADATA_PATH } from '@signalbox/connector-mcp'
import type { CorsSettings } from '@signalbox/http-kit'
import { fastifyCorsOptions } from '@signalbox/http-kit'
import type { FastifyInstance, onRequestHookHandler } from 'fastify'

import type { Config } from '../config/schema.ts'

/**
 * Returns the request headers of the enabled protocols. A preflight that asks for one of them
 * allows all of them, in addition to the allowed headers.
 */
export function protocolHeaders({ mcp, a2a }: Config['connectors']): readonly string[] {
  return [
    ...(mcp.enable ? ['Mcp-Method', 'Mcp-Name'] : []),
    ...(a2a.enable ? ['A2A-Version', 'A2A-Extensions', 'X-A2A-Extensions'] : []),
  ]
}

/**
 * Response headers of the agent protocol. Answers at `/a2a` expose them, in addition to the exposed
 * headers.
 */
const A2A_EXPOSED = ['A2A-Extensions']

/** Response headers that clients in browsers need in the OAuth mode, in addition to the exposed headers. */
const OAUTH_EXPOSED = ['WWW-Authenticate']

/** The longest list of requested headers that is searched, in characters. */
const MAX_ASKED = 2_048

/**
 * Adds CORS to every route, only for requests with an Origin header. Tools
 * and agents send none, so they do not pay for headers that they would ignore.
 * @param oauth `true` if `/mcp` is a protected resource of OAuth, whose metadata has its own CORS
 */
export async function addCors(
  app: FastifyInstance,
  given: CorsSettings,
  protocolHeaderNames: readonly string[],
  oauth: boolean,
): Promise<void> {
  const settings = oauth ? { ...given, exposeHeaders: [...given.exposeHeaders, ...OAUTH_EXPOSED] } : given
  const asked = new Set(protocolHeaderNames.map((name) => name.toLowerCase()))
  const allowHeaders = [...settings.allowHeaders, ...protocolHeaderNames]
  const usual = await corsHook(app, settings, true)
  const withProtocols = await corsHook(app, { ...settings, allowHeaders }, false)
  const exposeHeaders = [...settings.exposeHeaders, ...A2A_EXPOSED]
  const ofAgents = await corsHook(app, { ...settings, exposeHeaders }, false)
  app.addHook('onRequest', function browsersOnly(request, reply, done) {
    const { headers, method } = request
    if (headers.origin === undefined || (oauth && request.url.startsWith(METADATA_PATH))) done()
    else if (method === 'OPTIONS' && asksFor(asked, headers['access-control-request-headers'])) {
      withProtocols.call(this, request, reply, done)
    } else if (method !== 'OPTIONS' && request.url.startsWith('/a2a/')) ofAgents.call(this, request, reply, done)
    else usual.call(this, request, reply, done)
  })
}

function asksFor(names: ReadonlySet<string>, header: string | undefined): boolean {
  if (header === undefined || header.length > MAX_ASKED) return false
  return header.split(',').some((name) => names.has(name.trim().toLowerCase()))
}

/**
 * Returns the plugin's hook for these settings, without adding it.
 * @param route Lets the plugin add its route for OPTIONS
 */
async function corsHook(app: FastifyInstance, settings: CorsSettings, route: boolean): Promise<onRequestHookHandler> {
  let found: onRequestHookHandler | undefined
  const facade: FastifyInstance = Object.create(app, {
    addHook: { value: (_name: 'onRequest', hook: onRequestHookHandler) => (found = hook) },
    ...(route ? {} : { decorateRequest: { value: () => app }, options: { value: () => app } }),
  })
  await new Promise<void>((resolve, reject) => {
    cors(facade, fastifyCorsOptions(settings), (error) => (error ? reject(error) : resolve()))
  })
  if (found === undefined) throw new TypeError('@fastify/cors added no hook')
  return found
}
