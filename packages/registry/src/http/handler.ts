import type { OutgoingHttpHeaders } from 'node:http'

import { isBrokerError } from '@signalbox/broker-core'
import type { ConnectionCaller } from '@signalbox/http-kit'
import { Endpoint, InFlight, failureHook } from '@signalbox/http-kit'

import type { AgentRegistry } from '../agent-registry.ts'
import type { RegistryErrorCode } from '../errors.ts'
import { REGISTRY_ERRORS, RegistryError } from '../errors.ts'
import type { Failure } from './registry-exchange.ts'
import { RegistryExchange } from './registry-exchange.ts'
import type { RegistryOutcome, ResolvedRouteOptions } from './route-options.ts'
import type { RegistryRoute } from './routes.ts'
import { routesAt } from './routes.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

/** The endpoints at `/agents`. */
export class RegistryEndpoints {
  readonly #registry: AgentRegistry
  readonly #options: ResolvedRouteOptions
  readonly #endpoint: Endpoint
  readonly #inFlight = new InFlight()
  #closed: Promise<unknown> | undefined

  constructor(registry: AgentRegistry, options: ResolvedRouteOptions) {
    this.#registry = registry
    this.#options = options
    const { authenticator, bindHost, frontDoor, hooks, trustedOrigins } = options
    this.#endpoint = new Endpoint({
      authenticator,
      trustedOrigins,
      originsSetting: 'CONNECTORSA2_A_TRUSTED_ORIGINS',
      bindHost,
      frontDoor,
      failed: failureHook(hooks),
    })
  }

  handle(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const exchange = new RegistryExchange(request, response, headers, (finished, outcome) =>
      this.#finished(finished, outcome),
    )
    const { url = '/', method } = request
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    const query = mark === -1 ? '' : url.slice(mark + 1)
    const found = routesAt(path)
    if (found === undefined) {
      exchange.notFound()
      return
    }
    const { agentId, routes } = found
    const route = routes.find((candidate) => candidate.method === method)
    exchange.route = route?.name ?? 'unknown'
    if (route === undefined) {
      const allowed = routes.map((candidate) => candidate.method).join(', ')
      const headers = { Allow: allowed }
      exchange.fail({ ...failure('METHOD_NOT_ALLOWED', `method not allowed: this path takes ${allowed}`), headers })
      return
    }
    this.#endpoint.admit(exchange, (_exchange, caller) => this.#run(exchange, route, caller, agentId, query))
  }

  #run(
    exchange: RegistryExchange,
    route: RegistryRoute,
    caller: ConnectionCaller,
    agentId: string,
    query: string,
  ): void {
    const { hold, request, response } = exchange
    const { account, identity } = caller
    const { maxBodyBytes, broker } = this.#options
    this.#inFlight.begin()
    let running = true
    const end = (): void => {
      if (!running) return
      running = false
      this.#inFlight.finish()
    }
    // A body that breaks off never ends, so the response ends the call.
    response.once('close', () => {
      exchange.abandon()
      end()
    })
    route
      .run({
        registry: this.#registry,
        request,
        hold,
        maxBodyBytes,
        identity,
        account,
        rights: broker && caller.handle(broker),
        agentId,
        query,
      })
      .then(
        (answer) => exchange.succeed(answer),
        (error: unknown) => this.#fail(exchange, route, error),
      )
      .catch((error: unknown) => this.#endpoint.report(error))
      .finally(end)
  }

  #fail(exchange: RegistryExchange, route: RegistryRoute, error: unknown): void {
    if (error instanceof RegistryError) {
      const { code, message, details } = error
      // The specification requires 400 for every error of a heartbeat.
      const status = route.name === 'heartbeat' && error.status === 404 ? 400 : error.status
      const headers = code === 'TOO_MANY_REQUESTS' ? { 'Retry-After': '1' } : {}
      exchange.fail({ status, code, message, details, headers })
    } else if (isBrokerError(error, 'FORBIDDEN')) {
      exchange.fail({ status: 403, code: error.code, message: error.message })
    } else if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) {
      exchange.fail({ status: 503, code: error.code, message: error.message })
    } else {
      this.#endpoint.fail(exchange, error)
    }
  }

  #finished({ route, seconds }: RegistryExchange, outcome: RegistryOutcome): void {
    try {
      this.#options.hooks.requestFinished?.({ route, outcome, seconds })
    } catch {}
  }

  async close(graceMs: number): Promise<void> {
    this.#endpoint.close()
    this.#closed ??= this.#inFlight.idleWithin(graceMs)
    await this.#closed
  }
}

function failure(code: RegistryErrorCode, message: string): Failure {
  return { status: REGISTRY_ERRORS[code].status, code, message }
}
