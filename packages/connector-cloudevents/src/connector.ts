import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { checkBroker, IdempotencyKeys, requestLog } from '@signalbox/broker-core/internal'
import { Surface } from '@signalbox/http-kit'
import {
  AnswerRelay,
  createConnector,
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  PendingRequests,
  quietHook,
  wholeBody,
} from '@signalbox/http-kit/internal'
import type { DocumentedRoute } from '@signalbox/http-kit/internal'
import type { Call, Connector, HttpRequest, HttpResponse, Identity, Route } from '@signalbox/http-kit'

import { CeExchange } from './ce-exchange.ts'
import { contentMode, readEvents, unsupported } from './event/read-events.ts'
import type { IncomingEvent } from './event/attributes.ts'
import { resolveCeOptions } from './options.ts'
import type { CeConnectorOptions, CeOutcome, ResolvedCeOptions } from './options.ts'
import {
  hasPushBody,
  MAX_PUSH_BYTES,
  PUSH_PATH,
  pushMethods,
  pushTarget,
  refuseQuery,
} from './push/push-subscriptions.ts'
import type { PushSubscriptions, PushTarget } from './push/push-subscriptions.ts'
import { CE_ROUTES } from './routes/index.ts'
import { sendResponse } from './routes/requests.ts'
import type { CeEnvironment, CeRoute, CeRouteCall, PreparedCall } from './routes/route.ts'
import { Flusher } from './sse/feed.ts'
import { Subscriptions } from './sse/subscriptions.ts'
import type { SubscriptionInfo } from './sse/subscriptions.ts'

/** The CloudEvents endpoint at `/ce/*`. */
export interface CeConnector extends Connector {
  /** Returns the number of open subscriptions. */
  openStreams(): number
  /** Returns the open subscriptions. */
  subscriptions(): readonly SubscriptionInfo[]
  /** Returns the number of commands and queries that subscribers received and have not answered. */
  pendingRequests(): number
}

/** A connector with its surface, for other hosts than Node's HTTP server. */
interface OpenCeConnector {
  readonly connector: CeConnector
  readonly surface: CeSurface
  /** The path before the names of the routes. */
  readonly path: string
}

/**
 * Returns the CloudEvents endpoint over a broker, with a handler for Node's HTTP server:
 * `http.createServer(ceConnector(broker, options).handler)`. Closing ends waiting receives with an empty result, and
 * settles the messages of written answers. For Fastify import it from `@signalbox/connector-cloudevents/fastify`.
 * @throws RangeError for an option out of range
 */
export function ceConnector(broker: Broker, options: CeConnectorOptions = {}): CeConnector {
  return openCeConnector(broker, options).connector
}

/**
 * Returns the routes, for an OpenAPI document: with `push` those of webhook subscriptions too. Loads them: a start does
 * not need them.
 */
export async function documentedCeRoutes({ push }: { readonly push: boolean }): Promise<readonly DocumentedRoute[]> {
  const { EVENT_ROUTES, PUSH_ROUTES } = await import('./routes/documented-routes.ts')
  return push ? [...EVENT_ROUTES, ...PUSH_ROUTES] : EVENT_ROUTES
}

/** Returns a connector and its surface. */
export function openCeConnector(broker: Broker, options: CeConnectorOptions): OpenCeConnector {
  checkBroker('ceConnector', broker)
  const resolved = resolveCeOptions(options)
  const surface = new CeSurface(broker, resolved)
  const { pending, subscriptions } = surface.environment
  const connector = createConnector(
    {
      handler: (request, response, headers) => surface.serve(request, response, headers),
      close: (graceMs) => surface.close(graceMs),
    },
    options,
  )
  return {
    connector: {
      ...connector,
      openStreams: () => subscriptions.size,
      subscriptions: () => subscriptions.list(),
      pendingRequests: () => pending.size,
    },
    surface,
    path: resolved.path,
  }
}

/** A request to a route. */
class RouteExchange extends CeExchange {
  /** The call with its checked query, after the head of the request was accepted. */
  prepared: PreparedCall | undefined
}

/** A route, and how the surface serves it. */
interface ServedRoute extends Route<RouteExchange, readonly IncomingEvent[]> {
  readonly method: string
}

/** A call as its route sees it. A class, because an object literal with a getter costs as much as reading an event. */
class RouteCall implements CeRouteCall {
  readonly broker: BrokerHandle
  readonly identity: Identity
  readonly account: string
  readonly events: readonly IncomingEvent[]
  readonly exchange: CeExchange
  readonly environment: CeEnvironment
  readonly #call: Call<CeExchange>

  constructor(
    call: Call<CeExchange>,
    broker: BrokerHandle,
    events: readonly IncomingEvent[],
    environment: CeEnvironment,
  ) {
    this.broker = broker
    this.identity = call.caller.identity
    this.account = call.caller.account
    this.events = events
    this.exchange = call.exchange
    this.environment = environment
    this.#call = call
  }

  get signal(): AbortSignal {
    return this.#call.signal
  }
}

/** The surface of the routes below `/ce` over a broker. */
class CeSurface {
  readonly environment: CeEnvironment
  readonly #broker: Broker
  readonly #options: ResolvedCeOptions
  readonly #surface: Surface
  readonly #routes: ReadonlyMap<string, ServedRoute>
  readonly #onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined

  constructor(broker: Broker, options: ResolvedCeOptions) {
    this.#broker = broker
    this.#options = options
    const { hooks, system } = options
    this.#surface = new Surface({
      ...options,
      originsSetting: 'CONNECTORSCE_TRUSTED_ORIGINS',
      tracing: broker.tracing,
      finish: () => this.#finish(),
    })
    const { failed, settlements } = this.#surface
    const pending = new PendingRequests()
    const dropped = quietHook(hooks.eventsDropped?.bind(hooks))
    this.environment = {
      options,
      settlements,
      pending,
      relay: system && new AnswerRelay(system, pending),
      keys: system && new IdempotencyKeys(requestLog(system), options.idempotencySeconds * 1000),
      subscriptions: new Subscriptions(options.maxStreams),
      flusher: new Flusher(),
      failed,
      dropped: (count) => dropped?.(count),
    }
    const finished = quietHook(hooks.requestFinished?.bind(hooks))
    this.#onFinished = finished && (({ route, seconds }, outcome) => finished({ route, outcome, seconds }))
    this.#routes = new Map(CE_ROUTES.map((route) => [route.name, this.#routeOf(route)]))
  }

  /**
   * Serves a request.
   * @param known The name of the route, if the host has found it
   */
  serve(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined, known?: string): void {
    const exchange = new RouteExchange(request, response, headers, this.#onFinished)
    const { url = '/', method = '' } = request
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    exchange.query = mark === -1 ? '' : url.slice(mark + 1)
    const { path: base, push } = this.#options
    const name = known ?? (path.startsWith(`${base}/`) ? path.slice(base.length + 1) : '')
    const route = this.#routes.get(name)
    const target = route === undefined && push !== undefined ? pushTarget(name) : undefined
    if (route !== undefined) {
      exchange.route = name
      exchange.template = `${base}/${name}`
      this.#surface.serve(exchange, route.method === method ? route : [route.method])
    } else if (push !== undefined && target !== undefined) {
      exchange.route = PUSH_PATH
      exchange.template = `${base}/${PUSH_PATH}`
      const methods = pushMethods(target)
      this.#surface.serve(exchange, methods.includes(method) ? this.#pushRoute(push, target) : methods)
    } else this.#surface.serve(exchange, undefined)
  }
  #routeOf(route: CeRoute): ServedRoute {
    const { body, endsAtShutdown, method, name } = route
    const { maxBodyBytes } = this.#options
    return {
      method,
      endsAtShutdown,
      // Answers to pending requests are accepted during a shutdown too.
      whileClosing: () => route === sendResponse && this.environment.pending.size > 0,
      accept: (call) => {
        const { exchange } = call
        exchange.prepared = route.prepare(exchange.query)
        if (body === 'ignored') return undefined
        const { headers } = exchange.request
        if (contentMode(headers) === 'batch' && body !== 'events') {
          throw unsupported(`${name} accepts one event at a time, no batch`)
        }
        this.#assertUseful(route, call, Number(headers['content-length'] ?? 0))
        return maxBodyBytes
      },
      read: (call, bytes) => {
        const { request } = call.exchange
        // A body without a declared length is measured now.
        if (request.headers['content-length'] === undefined) this.#assertUseful(route, call, bytes.byteLength)
        return readEvents(contentMode(request.headers), request, bytes)
      },
      run: (call, events) => this.#run(call, events ?? []),
    }
  }

  /** Refuses a large body of a caller that may use the route on no channel, before it is parsed. @throws BrokerError */
  #assertUseful({ needs }: CeRoute, { caller }: Call<CeExchange>, bytes: number): void {
    if (bytes <= LARGE_BODY_BYTES || needs === undefined) return
    const broker = caller.handle(this.#broker)
    if (needs.types.some((type) => broker.mayPermit(needs.action, type))) return
    broker.authorize(needs.action, needs.types[0], '*')
  }

  async #run(call: Call<RouteExchange>, events: readonly IncomingEvent[]): Promise<void> {
    const { environment } = this
    const { exchange } = call
    exchange.first = events[0]
    const broker = call.caller.handleWithin(exchange.span, this.#broker)
    const running = new RouteCall(call, broker, events, environment)
    const answer = await exchange.prepared?.(running)
    if (answer !== undefined) exchange.answer(answer, environment.settlements)
  }

  /** Returns the route of a call on webhook subscriptions. */
  #pushRoute(push: PushSubscriptions, target: PushTarget): Route<CeExchange, Uint8Array> {
    return {
      accept: ({ exchange: { query, request } }) => {
        refuseQuery(query)
        if (!hasPushBody(target, request.method ?? '')) return undefined
        if (jsonHeadersProblem(request.headers) !== undefined) {
          throw unsupported('Content-Type must be application/json, without Content-Encoding')
        }
        return Math.min(this.#options.maxBodyBytes, MAX_PUSH_BYTES)
      },
      read: wholeBody,
      run: async ({ caller, exchange }, body) => {
        // Webhooks are off by default, so the modules for subscriptions are loaded at the first call.
        const { pushCall } = await import('./push/push-route.ts')
        const { method = '' } = exchange.request
        const { status, text } = await pushCall(push, { broker: caller.handle(this.#broker), method, target, body })
        exchange.answerPlain(status, text)
      },
    }
  }

  close(graceMs: number): Promise<void> {
    return this.#surface.close(graceMs)
  }

  async #finish(): Promise<void> {
    const { flusher, pending, relay, subscriptions } = this.environment
    flusher.flushAll()
    subscriptions.closeAll()
    pending.endAll({
      error: "the subscriber's server shut down before it answered; it may have executed the request",
    })
    await relay?.close().catch(this.#surface.failed)
  }
}
