import { addUnreadRoutes, takeOver } from '@signalbox/http-kit'
import type { ServeUnread } from '@signalbox/http-kit'
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

import { CARD_PATH } from './cards.ts'
import type { A2aHandler, A2aDependencies } from './handler.ts'
import { createA2aHandler } from './handler.ts'
import type { A2aOptions } from './options.ts'

export interface A2aConnectorOptions extends A2aOptions {
  /** Milliseconds that calls have to finish when the server closes. @default 5000 */
  readonly drainMs?: number
  /**
   * Run the preValidation and preHandler hooks of the host on these routes. Without them a request is taken over
   * right after the onRequest and preParsing hooks. @default true
   */
  readonly runHostHooks?: boolean
}

/** A Fastify plugin; `handler` is what it runs on, for gauges and for an end before Fastify's own. */
export type A2aConnector = FastifyPluginCallback & { readonly handler: A2aHandler }

/**
 * The path of a request. The host's router limits the length of `:agent_id` to less than an agent
 * id may have (A13).
 */
interface AnyPath {
  readonly '*'?: string
}

/**
 * The agent gateway as a Fastify 5 plugin: `app.register(a2aConnector({ broker, system, registry, requests }, options))`.
 * Hooks of the host (CORS, logging, its own checks) run as for any route; bodies go to the gateway unread. It closes with
 * the server.
 */
export function a2aConnector(dependencies: A2aDependencies, options: A2aConnectorOptions = {}): A2aConnector {
  const { drainMs, runHostHooks = true, ...a2aOptions } = options
  const handler = createA2aHandler(dependencies, a2aOptions)
  const agent = (request: FastifyRequest, reply: FastifyReply): void => {
    const { '*': path = '' }: AnyPath = Object(request.params)
    const headers = takeOver(reply)
    handler.handlePath(path, request.raw, reply.raw, headers)
  }
  const platformCard = (request: FastifyRequest, reply: FastifyReply): void => {
    const headers = takeOver(reply)
    handler.handlePlatformCard(request.raw, reply.raw, headers)
  }
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    const routes: [string, ServeUnread][] = [
      ['/a2a', agent],
      // Not a parameter: the host's router bounds the length of those, and answers 404 for a longer one.
      ['/a2a/*', agent],
      [CARD_PATH, platformCard],
    ]
    addUnreadRoutes(app, routes, { runHostHooks })
    app.addHook('preClose', () => handler.close(drainMs))
    done()
  }
  return Object.assign(plugin, { handler })
}
