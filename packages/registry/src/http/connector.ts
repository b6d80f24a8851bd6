import type { OutgoingHttpHeaders } from 'node:http'

import type { Connector, HttpRequest, HttpResponse, Route } from '@signalbox/http-kit'
import { Surface } from '@signalbox/http-kit'
import { createConnector, quietHook } from '@signalbox/http-kit/internal'
import type { DocumentedRoute } from '@signalbox/http-kit/internal'

import type { AgentRegistry } from '../agent-registry.ts'
import { bodyLimit, parseBody } from './json-body.ts'
import { RegistryExchange } from './registry-exchange.ts'
import type { RegistryOutcome, RegistryRouteOptions, ResolvedRouteOptions } from './route-options.ts'
import { resolveRouteOptions } from './route-options.ts'
import type { RegistryRoute } from './registry-route.ts'
import { routesAt } from './routes.ts'

/** The registry's endpoints: `/agents` and `/agents/*`. */
export type RegistryRoutes = Connector

/**
 * Creates the registry's endpoints, with a handler for Node's HTTP server:
 * `http.createServer(registryRoutes(registry, options).handler)`. Closing the endpoints leaves the registry open. For
 * Fastify import it from `@signalbox/registry/fastify`.
 * @throws RangeError for an option that is out of range
 */
export function registryRoutes(registry: AgentRegistry, options: RegistryRouteOptions = {}): RegistryRoutes {
  const endpoints = new RegistryEndpoints(registry, resolveRouteOptions(options))
  return createConnector(
    {
      handler: (request, response, headers) => endpoints.handle(request, response, headers),
      close: (graceMs) => endpoints.close(graceMs),
    },
    options,
  )
}

/**
 * Returns the routes, for an OpenAPI document. Loads them: a start does not need them.
 * @param options.inbox `true` for routes with {@link RegistryRouteOptions.inbox}. @default false
 */
export async function documentedRegistryRoutes(
  options: { readonly inbox?: boolean } = {},
): Promise<readonly DocumentedRoute[]> {
  const { INBOX_ROUTES, REGISTRY_ROUTES } = await import('./documented-routes.ts')
  return options.inbox === true ? [...REGISTRY_ROUTES, ...INBOX_ROUTES] : REGISTRY_ROUTES
}

/** The surface of `/agents` and the paths below it. */
class RegistryEndpoints {
  readonly #registry: AgentRegistry
  readonly #options: ResolvedRouteOptions
  readonly #surface: Surface
  readonly #onFinished: ((exchange: RegistryExchange, outcome: RegistryOutcome) => void) | undefined

  constructor(registry: AgentRegistry, options: ResolvedRouteOptions) {
    this.#registry = registry
    this.#options = options
    this.#surface = new Surface({
      ...options,
      originsSetting: 'CONNECTORSA2_A_TRUSTED_ORIGINS',
      tracing: options.broker?.tracing,
    })
    const { hooks } = options
    const finished = quietHook(hooks.requestFinished?.bind(hooks))
    this.#onFinished = finished && (({ route, seconds }, outcome) => finished({ route, outcome, seconds }))
  }

  handle(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const { maxBodyBytes } = this.#options
    const exchange = new RegistryExchange(request, response, headers, maxBodyBytes, this.#onFinished)
    const { url = '/', method } = request
    const mark = url.indexOf('?')
    const found = routesAt(mark === -1 ? url : url.slice(0, mark), this.#options.inbox !== undefined)
    const route = found?.routes.find((candidate) => candidate.method === method)
    if (found !== undefined && route !== undefined) {
      exchange.route = route.name
      exchange.template = found.template(route)
      this.#surface.serve(exchange, this.#served(route, found.agentId, mark === -1 ? '' : url.slice(mark + 1)))
    } else
      this.#surface.serve(
        exchange,
        found?.routes.map((candidate) => candidate.method),
      )
  }

  #served(route: RegistryRoute, agentId: string, query: string): Route<RegistryExchange> {
    const { broker, inbox, maxBodyBytes } = this.#options
    return {
      endsAtShutdown: route.waits === true,
      accept: ({ exchange }) => {
        // A body that breaks off never ends, so the response ends the call.
        exchange.response.once('close', () => exchange.abandon())
        if (route.body === undefined) return undefined
        const limit = bodyLimit(exchange.request, route.body, maxBodyBytes)
        exchange.body = route.body
        return limit
      },
      read: (_call, body) => parseBody(body),
      run: async (call, body) => {
        const { caller, exchange } = call
        const { account, identity } = caller
        const rights = broker && caller.handleWithin(exchange.span, broker)
        const { request } = exchange
        const registry = this.#registry
        const signal = (): AbortSignal => call.signal
        const input = { registry, request, body, identity, account, rights, agentId, query, inbox, signal }
        exchange.succeed(await route.run(input))
      },
    }
  }

  close(graceMs: number): Promise<void> {
    return this.#surface.close(graceMs)
  }
}
