import type { BrokerObserver } from '@signalbox/broker-core'
import { anonymousOperator, DEFAULT_MAX_BODY_BYTES } from '@signalbox/http-kit'
import type { Authenticator, Connector } from '@signalbox/http-kit'
import { readNoBodies } from '@signalbox/http-kit/fastify'
import type { FastifyMount } from '@signalbox/http-kit/fastify'
import type { FastifyInstance, FastifyPluginCallback } from 'fastify'

import { OperatorSurface } from './access/operator-surface.ts'
import { AuditLog } from './audit/audit-log.ts'
import { brokerAudit } from './audit/broker-audit.ts'
import { Attachments } from './channels/attachments.ts'
import { ChannelIndex } from './channels/channel-index.ts'
import { addConsoleRoutes } from './console/console-routes.ts'
import { addSignInRoute } from './console/sign-in.ts'
import { Redrives } from './dead-letters/redrives.ts'
import { JSON_HEADERS, sendFailure } from './envelope.ts'
import { notReady, toManagementError } from './errors.ts'
import { History } from './history/history.ts'
import type { MapReports } from './map/traffic-map.ts'
import { TrafficMap } from './map/traffic-map.ts'
import { addMonitorRoutes } from './monitor/monitor-routes.ts'
import { Monitors } from './monitor/monitors.ts'
import { mountOperations, mountReading, requestHandlers } from './mount-operations.ts'
import type { ManagementEnvironment } from './operation.ts'
import type { ManagementControl, ManagementOptions } from './options.ts'
import type { ManagementServices, SecurityStatus } from './ports.ts'
import { OpenRequests } from './requests/open-requests.ts'
import { OBSERVER, Statistics } from './statistics/statistics.ts'
import { MessageTrail } from './trace/message-trail.ts'

export { AuditLog } from './audit/audit-log.ts'

/** The management API. It has no handler for node's HTTP server: its routes are Fastify's. */
export interface ManagementApi extends Omit<Connector, 'handler'>, FastifyMount, ManagementControl {}

/**
 * Creates the operators' routes for a separate listener: metrics, statistics, audit, monitor, actions
 * and their OpenAPI document:
 * `app.register(managementApi(options).plugin)`. Register it before the broker exists; `serve`
 * provides the broker. Closing ends the monitors, and does the same as `finish`.
 */
export function managementApi(options: ManagementOptions): ManagementApi {
  const endpoint = new ManagementEndpoint(options)
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    endpoint.mount(app)
    done()
  }
  return {
    plugin,
    observers: endpoint.observers,
    audit: endpoint.audit,
    map: endpoint.map,
    serve: (services) => endpoint.serve(services),
    finish: (graceMs) => endpoint.finish(graceMs),
    close: (graceMs) => endpoint.close(graceMs),
    [Symbol.asyncDispose]: () => endpoint.close(),
  }
}

class ManagementEndpoint {
  readonly audit: AuditLog
  readonly observers: readonly BrokerObserver[]
  readonly map: MapReports
  readonly #options: ManagementOptions
  readonly #surface: OperatorSurface
  readonly #environment: ManagementEnvironment
  #services: ManagementServices | undefined
  #finished: Promise<void> | undefined

  constructor(options: ManagementOptions) {
    this.#options = options
    const { messages = false, log, ...audit } = options.audit ?? {}
    this.audit = log ?? new AuditLog({ failed: (error) => this.#surface.failed(error), ...audit })
    const statistics = new Statistics(options.statistics)
    const attachments = new Attachments()
    const history = new History(statistics, options.historyStepMs)
    const map = new TrafficMap(history.stepMs)
    const requests = new OpenRequests((request) => map.requestEnded(request))
    const trail = new MessageTrail()
    this.map = map
    this.observers = [
      statistics,
      attachments,
      history.observer,
      map,
      requests,
      trail,
      brokerAudit(this.audit, { messages }),
    ]
    const { authenticator = anonymousOperator, trustedOrigins = 'auto', bindHost, frontDoor } = options
    const redrives = new Redrives((error) => this.#surface.failed(error))
    this.#surface = new OperatorSurface(
      {
        authenticator,
        trustedOrigins,
        // A page of another port of this machine is as foreign as any other: operators use the console.
        ownOriginOnly: true,
        originsSetting: 'API_TRUSTED_ORIGINS',
        bindHost,
        frontDoor,
        settleGraceMs: options.settleGraceMs ?? 250,
        hooks: options.hooks ?? {},
        drain: () => redrives.close(),
        finish: async () => history[Symbol.dispose](),
      },
      this.audit,
    )
    this.#environment = {
      statistics,
      attachments,
      audit: this.audit,
      monitors: new Monitors(options.monitors),
      requests,
      trail,
      redrives,
      history,
      map,
      channelIndex: new ChannelIndex(),
      config: options.config ?? (() => ({})),
      settings: options.settings ?? (() => []),
      security: options.security ?? (() => ownSecurity(authenticator)),
      traceUrl: options.traceUrl ?? (() => undefined),
      node: options.node,
      streams: options.streams ?? (() => ({})),
    }
  }

  serve(services: ManagementServices): void {
    this.#services = services
    this.audit.open(services.system)
    this.#environment.monitors.watch(services.broker)
    this.#environment.map.ignore(services.system.caller)
    const { channels } = services.broker.as(OBSERVER)
    this.#environment.history.start({
      stats: () => services.broker.stats(),
      states: (names) => channels.states(names),
      agentCalls: services.agents?.calls ?? (() => []),
      streams: () => this.#environment.streams(),
      stepEnded: (step) => this.#environment.map.edges.roll(step),
    })
  }

  mount(app: FastifyInstance): void {
    const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES, maxWaitMs = 170_000 } = this.#options
    const surface = this.#surface
    readNoBodies(app)
    // The surface answers errors on its routes.
    app.setErrorHandler((error, request, reply) => {
      surface.failed(error, request.raw)
      return sendFailure(reply, toManagementError(error))
    })
    this.#addMetrics(app)
    this.#addDocument(app)
    mountOperations(app, {
      surface,
      environment: this.#environment,
      maxBodyBytes,
      maxWaitMs,
      services: () => this.#ready(),
    })
    addMonitorRoutes(app, surface, this.#environment.monitors)
    const { authenticator = anonymousOperator, console } = this.#options
    addSignInRoute(app, { required: authenticator.anonymous !== true, oauth: console?.oauth })
    if (console !== undefined) addConsoleRoutes(app, console)
    app.addHook('preClose', () => this.close())
  }

  /** @throws ManagementError NOT_READY */
  #ready(): ManagementServices {
    if (this.#services === undefined) throw notReady()
    return this.#services
  }

  #addMetrics(app: FastifyInstance): void {
    const { metrics } = this.#options
    mountReading(app, this.#surface, '/metrics', async ({ exchange }) => {
      const text = await metrics.text()
      exchange.answer({ 'cache-control': 'no-store', 'content-type': metrics.contentType }, text)
    })
  }

  #addDocument(app: FastifyInstance): void {
    const { routes = () => [], ...info } = this.#options.document
    mountReading(app, this.#surface, '/openapi.json', async ({ exchange }) => {
      const [{ MANAGEMENT_ROUTES, openApiDocument }, others] = await Promise.all([requestHandlers(), routes()])
      exchange.answer(JSON_HEADERS, JSON.stringify(openApiDocument([...MANAGEMENT_ROUTES, ...others], info)))
    })
  }

  async close(graceMs?: number): Promise<void> {
    await Promise.all([this.#environment.monitors.close(), this.finish(graceMs)])
  }

  finish(graceMs = this.#options.drainMs ?? 1_000): Promise<void> {
    this.#finished ??= this.#surface.close(graceMs).then(() => this.audit.close())
    return this.#finished
  }
}

const NO_TLS = { enabled: false, mutual: false }

/** Returns the status of a host that does not provide its own: only the management listener is known. */
export function ownSecurity({ anonymous = false }: Authenticator): SecurityStatus {
  return {
    authentication: {
      shared: false,
      management: !anonymous,
      algorithms: [],
      issuer: '',
      audience: [],
      oauth: false,
      since: 0,
    },
    tls: { shared: NO_TLS, management: NO_TLS },
  }
}
