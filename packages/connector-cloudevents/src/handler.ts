import type { OutgoingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import {
  allSteps,
  Endpoint,
  failureHook,
  InFlight,
  jsonHeadersProblem,
  LARGE_BODY_BYTES,
  Settlements,
} from '@signalbox/http-kit'
import type { ConnectionCaller } from '@signalbox/http-kit'

import { CallEnded, Calls, RunningCall } from './calls.ts'
import { CeError, toCeError } from './errors.ts'
import { contentMode, unsupported } from './event/content-mode.ts'
import { readEvents } from './event/read-events.ts'
import type { IncomingEvent } from './event/incoming-event.ts'
import { CeExchange } from './ce-exchange.ts'
import type { CeOutcome, ResolvedCeOptions } from './options.ts'
import { AnswerRelay, PendingRequests } from '@signalbox/http-kit'
import type { PushTarget } from './push/push-target.ts'
import { hasPushBody, MAX_PUSH_BYTES, PUSH_PATH, pushMethods, pushTarget, refuseQuery } from './push/push-target.ts'
import { CE_ROUTES } from './routes/index.ts'
import { sendResponse } from './routes/requests.ts'
import type { CeEnvironment, CeRoute } from './routes/route.ts'
import { Flusher } from './sse/flusher.ts'
import { Subscriptions } from './sse/subscriptions.ts'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'

const BY_NAME: ReadonlyMap<string, CeRoute> = new Map(CE_ROUTES.map((route) => [route.name, route]))

/** The endpoint for the routes below `/ce` over a broker. */
export class CeEndpoint {
  readonly environment: CeEnvironment
  readonly #broker: Broker
  readonly #options: ResolvedCeOptions
  readonly #endpoint: Endpoint
  readonly #calls = new Calls()
  /** The calls on webhook subscriptions. */
  readonly #inFlight = new InFlight()
  readonly #settlements: Settlements
  readonly #onFinished: ((exchange: CeExchange, outcome: CeOutcome) => void) | undefined = undefined
  #closed: Promise<void> | undefined

  constructor(broker: Broker, options: ResolvedCeOptions) {
    this.#broker = broker
    this.#options = options
    const { hooks } = options
    this.#endpoint = new Endpoint({
      authenticator: options.authenticator,
      trustedOrigins: options.trustedOrigins,
      originsSetting: 'CONNECTORSCE_TRUSTED_ORIGINS',
      bindHost: options.bindHost,
      frontDoor: options.frontDoor,
      failed: failureHook(hooks),
    })
    const failed = (error: unknown, request?: HttpRequest): void => this.#endpoint.report(error, request)
    this.#settlements = new Settlements(options.settleGraceMs, failed)
    const pending = new PendingRequests()
    this.environment = {
      options,
      settlements: this.#settlements,
      pending,
      relay: options.system && new AnswerRelay(options.system, pending),
      subscriptions: new Subscriptions(options.maxStreams),
      flusher: new Flusher(),
      failed,
      dropped(count) {
        try {
          hooks.eventsDropped?.(count)
        } catch {}
      },
    }
    if (hooks.requestFinished !== undefined) {
      this.#onFinished = ({ route, startedAt }, outcome) => {
        try {
          hooks.requestFinished?.({ route, outcome, seconds: (performance.now() - startedAt) / 1000 })
        } catch {}
      }
    }
  }

  handle(
    name: string | undefined,
    request: HttpRequest,
    response: HttpResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    if (this.#settlements.size > 0) this.#settlements.nextRequest(request.socket)
    const exchange = new CeExchange(request, response, headers, this.#onFinished)
    const { url = '/', method } = request
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    const query = mark === -1 ? '' : url.slice(mark + 1)
    const known = name ?? this.#nameOf(path)
    const route = BY_NAME.get(known)
    if (route === undefined) {
      const push = this.#options.push && pushTarget(known)
      if (push !== undefined) {
        this.#push(exchange, push, query)
        return
      }
      exchange.notFound()
      return
    }
    exchange.route = route.name
    if (method !== route.method) {
      const message = `method not allowed: ${route.name} accepts ${route.method} only`
      exchange.fail(new CeError('METHOD_NOT_ALLOWED', message), 'error', { Allow: route.method })
      return
    }
    this.#endpoint.admit(
      exchange,
      (_exchange, caller) => this.#admitted(exchange, route, query, caller),
      this.#helpsToFinish(route),
    )
  }

  /** Serves the subscriptions of webhooks. */
  #push(exchange: CeExchange, target: PushTarget, query: string): void {
    const { request } = exchange
    const { method = '' } = request
    exchange.route = PUSH_PATH
    const methods = pushMethods(target)
    if (!methods.includes(method)) {
      const message = `method not allowed: ${PUSH_PATH} accepts ${methods.join(' and ')} here`
      exchange.fail(new CeError('METHOD_NOT_ALLOWED', message), 'error', { Allow: methods.join(', ') })
      return
    }
    this.#endpoint.admit(exchange, (_exchange, caller) => {
      try {
        refuseQuery(query)
        if (!hasPushBody(target, method)) {
          request.resume()
          this.#runPush(exchange, caller, target, undefined)
          return
        }
        if (jsonHeadersProblem(request.headers) !== undefined) {
          throw unsupported('Content-Type must be application/json, without Content-Encoding')
        }
        this.#endpoint.readBody(exchange, Math.min(this.#options.maxBodyBytes, MAX_PUSH_BYTES), (_read, body) =>
          this.#runPush(exchange, caller, target, body),
        )
      } catch (error) {
        this.#fail(exchange, error)
      }
    })
  }

  #runPush(exchange: CeExchange, caller: ConnectionCaller, target: PushTarget, body: Uint8Array | undefined): void {
    const { push } = this.#options
    if (push === undefined) return
    const { method = '' } = exchange.request
    this.#inFlight.begin()
    exchange.hold?.retain()
    // Webhooks are off by default, so the modules for subscriptions are loaded at the first call.
    import('./push/push-route.ts')
      .then(({ pushCall }) => pushCall(push, { broker: caller.handle(this.#broker), method, target, body }))
      .then(
        ({ status, text }) => exchange.answerPlain(status, text),
        (error: unknown) => this.#fail(exchange, error),
      )
      .catch((error: unknown) => this.#endpoint.fail(exchange, error))
      .finally(() => {
        this.#inFlight.finish()
        exchange.hold?.release()
      })
  }

  /** Returns `true` for answers to pending requests, which are accepted during shutdown too. */
  #helpsToFinish(route: CeRoute): boolean {
    return route === sendResponse && this.environment.pending.size > 0
  }

  #nameOf(path: string): string {
    const { path: base } = this.#options
    return path.startsWith(`${base}/`) ? path.slice(base.length + 1) : ''
  }

  #admitted(exchange: CeExchange, route: CeRoute, query: string, caller: ConnectionCaller): void {
    const { request } = exchange
    try {
      const work = route.prepare(query)
      if (route.body === 'ignored') {
        request.resume()
        this.#run(exchange, route, work, caller, [])
        return
      }
      const mode = contentMode(request.headers)
      if (mode === 'batch' && route.body !== 'events') {
        throw unsupported(`${route.name} accepts one event at a time, no batch`)
      }
      const isForbidden = (bytes: number): boolean =>
        bytes > LARGE_BODY_BYTES && this.#isForbidden(exchange, route, caller)
      if (isForbidden(Number(request.headers['content-length'] ?? 0))) return
      this.#endpoint.readBody(exchange, this.#options.maxBodyBytes, async (_exchange, body) => {
        try {
          // A body without a declared length is measured now.
          if (request.headers['content-length'] === undefined && isForbidden(body.byteLength)) return
          const reading = readEvents(mode, request, body)
          const isLarge = body.byteLength > LARGE_BODY_BYTES
          const events = isLarge ? await exchange.inTurns(reading) : allSteps(reading)
          this.#run(exchange, route, work, caller, events)
        } catch (error) {
          this.#fail(exchange, error)
        }
      })
    } catch (error) {
      this.#fail(exchange, error)
    }
  }

  /** Refuses a large body of a caller that may use the route on no channel, before it is read. */
  #isForbidden(exchange: CeExchange, { needs }: CeRoute, caller: ConnectionCaller): boolean {
    const broker = caller.handle(this.#broker)
    if (needs === undefined || needs.types.some((type) => broker.mayPermit(needs.action, type))) return false
    try {
      broker.authorize(needs.action, needs.types[0], '*')
    } catch (error) {
      this.#fail(exchange, error)
      return true
    }
    return false
  }

  #run(
    exchange: CeExchange,
    { endsAtShutdown }: CeRoute,
    work: ReturnType<CeRoute['prepare']>,
    caller: ConnectionCaller,
    events: readonly IncomingEvent[],
  ): void {
    const { environment } = this
    const { identity, account } = caller
    const broker = caller.handle(this.#broker)
    const call = new RunningCall({ broker, identity, account, events, exchange, environment }, endsAtShutdown)
    const place = this.#calls.begin(call)
    exchange.hold?.retain()
    const finish = (): void => {
      call.finish()
      this.#calls.finish(place)
      exchange.hold?.release()
    }
    work(call)
      .then(
        (answer) => {
          if (answer !== undefined) exchange.answer(answer, this.#settlements)
          finish()
        },
        (error: unknown) => {
          this.#fail(exchange, error)
          finish()
        },
      )
      .catch((error: unknown) => {
        finish()
        this.#endpoint.fail(exchange, error)
        // Without this, a client would wait for the rest of an answer that failed while it was written.
        if (!exchange.response.writableEnded) exchange.response.destroy()
      })
  }

  #fail(exchange: CeExchange, error: unknown): void {
    if (error instanceof CallEnded) {
      if (error.reason === 'disconnected') exchange.abandon()
      else exchange.fail(new CeError('SHUTTING_DOWN', error.message))
      return
    }
    const answer = toCeError(error)
    if (answer.code === 'INTERNAL') this.environment.failed(error, exchange.request)
    exchange.fail(answer)
  }

  close(graceMs: number): Promise<void> {
    this.#endpoint.close()
    this.#closed ??= (async () => {
      const { flusher, pending, subscriptions, relay } = this.environment
      await Promise.all([this.#calls.close(graceMs), this.#inFlight.idleWithin(graceMs)])
      flusher.flushAll()
      subscriptions.closeAll()
      pending.endAll({
        error: "the subscriber's server shut down before it answered; it may have executed the request",
      })
      await relay?.close().catch((error: unknown) => this.environment.failed(error))
      await this.#settlements.close(1000)
    })()
    return this.#closed
  }
}
