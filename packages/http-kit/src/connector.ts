import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'

import type { FastifyPluginCallback } from 'fastify'

import type { TrustedOrigins } from './origin.ts'
import type { Authenticator } from './authenticator.ts'
import type { FrontDoor } from './endpoint/endpoint.ts'
import type { ServeUnread } from './fastify.ts'
import { addUnreadRoutes } from './fastify.ts'

/**
 * A function for node's HTTP server, and for any framework that can hand over request and response. It takes over one request; a path
 * that is none of the connector's is answered with 404 in plain text. `headers` go into the answer beside its own, such as CORS headers
 * that somebody set.
 */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse, headers?: OutgoingHttpHeaders) => void

/** An HTTP surface that can be mounted in a server: the shape that every factory of one returns. */
export interface Connector extends AsyncDisposable {
  /** For Fastify 5: `app.register(connector.plugin)`. It closes the connector when the server closes. */
  readonly plugin: FastifyPluginCallback
  /** For node's HTTP server: `http.createServer(connector.handler)`. Call `close` before you close the server. */
  readonly handler: NodeHandler
  /**
   * Takes no new calls, ends streams and waits for the calls under way, for `graceMs` milliseconds at most; 0 does not wait. Idempotent: later
   * calls wait for the first. `await using` calls it as well. @default graceMs the option `drainMs`
   */
  close(graceMs?: number): Promise<void>
}

/** The options that all connectors have. */
export interface ConnectorOptions {
  /** Verifies callers. @default every caller is `anonymous` */
  readonly authenticator?: Authenticator
  /** Which web pages may call. @default 'auto' (specification, "Origin validation") */
  readonly trustedOrigins?: TrustedOrigins
  /** The address the server binds to, which `auto` trusts. @default none */
  readonly bindHost?: string
  /** Limits of callers and of the process, trusted proxies, allowed hosts; share one between connectors. @default the default limits, for this connector alone */
  readonly frontDoor?: FrontDoor
  /** The largest request body, in bytes; at least 1. @default 10485760 */
  readonly maxBodyBytes?: number
  /** Milliseconds that calls under way have to finish when the connector closes; 0 does not wait. @default 5000 */
  readonly drainMs?: number
  /**
   * Whether preValidation and preHandler hooks of the Fastify host run on the connector's routes. Without them a request is taken over
   * right after the onRequest and preParsing hooks, which saves about a tenth of the CPU of a cheap call. @default true
   */
  readonly runHostHooks?: boolean
}

/** The default of {@link ConnectorOptions.drainMs}. */
export const DEFAULT_DRAIN_MS = 5000

/** What {@link createConnector} makes a connector of. */
export interface ConnectorParts {
  readonly routes: Iterable<readonly [url: string, serve: ServeUnread]>
  readonly handler: NodeHandler
  readonly close: (graceMs: number) => Promise<void>
}

/** Makes a connector of an endpoint that reads bodies itself. */
export function createConnector(
  { routes, handler, close }: ConnectorParts,
  { drainMs = DEFAULT_DRAIN_MS, runHostHooks = true }: Pick<ConnectorOptions, 'drainMs' | 'runHostHooks'>,
): Connector {
  return {
    plugin: (app, _options, done) => {
      addUnreadRoutes(app, routes, { runHostHooks })
      app.addHook('preClose', () => close(drainMs))
      done()
    },
    handler,
    close: (graceMs = drainMs) => close(graceMs),
    [Symbol.asyncDispose]: () => close(drainMs),
  }
}
