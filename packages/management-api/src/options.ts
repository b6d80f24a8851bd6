import type { BrokerObserver } from '@signalbox/broker-core'
import type { Authenticator, ConnectorOptions, HttpRequest } from '@signalbox/http-kit'
import type { DocumentedRoute } from '@signalbox/http-kit/internal'

import type { AuditLog, AuditLogOptions } from './audit/audit-log.ts'
import type { ConsoleOptions } from './console/console-routes.ts'
import type { MapReports } from './map/traffic-map.ts'
import type { MonitorsOptions } from './monitor/monitors.ts'
import type { DocumentInfo } from './openapi/document.ts'
import type { ManagementServices, MetricsPort, NodeStatus, SecurityStatus, SettingStatus } from './ports.ts'

/** Called for requests, synchronously: they must be quick. Their errors are dropped. */
export interface ManagementHooks {
  /** Reports a failure that no operator gets. For the log. */
  failed?(error: unknown, request?: HttpRequest): void
}

/** The content and the storage of the audit log. */
export interface ManagementAuditOptions extends AuditLogOptions {
  /** Audits every message, in addition to the other events. @default false */
  readonly messages?: boolean
  /** The log, if it was created before because other components record in it too. @default one of these options */
  readonly log?: AuditLog | undefined
}

export interface ManagementOptions extends Omit<ConnectorOptions, 'authenticator' | 'drainMs' | 'runHostHooks'> {
  /** Verifies callers. @default none: control-plane authentication is off, every caller acts as Admin */
  readonly authenticator?: Authenticator | undefined
  /** The effective configuration for `/api/config`, secrets masked. @default {} */
  readonly config?: () => object
  /** Returns every setting with the source of its value, for `/api/settings`. @default none */
  readonly settings?: () => readonly SettingStatus[]
  /**
   * Returns the authentication and the policy in force, for `/api/security`.
   * @default that of the management listener
   */
  readonly security?: (() => SecurityStatus) | undefined
  /** Returns the state of this node, for `/api/snapshot`. */
  readonly node: () => Promise<NodeStatus>
  /** For `/metrics`. */
  readonly metrics: MetricsPort
  /** Open streams of server-sent events, by connector. @default none */
  readonly streams?: () => Readonly<Record<string, number>>
  /** The content of the audit log, and the retention of its entries. @default the defaults of {@link ManagementAuditOptions} */
  readonly audit?: ManagementAuditOptions
  /** The most clients, and channels with errors, with statistics. @default 10000 of each */
  readonly statistics?: { readonly maxClients?: number; readonly maxChannels?: number }
  /** The length of a step of `/api/history`, in ms. A minute has twelve steps. @default 5000 */
  readonly historyStepMs?: number
  /** Limits of live monitors. @default the defaults of {@link MonitorsOptions} */
  readonly monitors?: MonitorsOptions
  /**
   * Additional content of the OpenAPI document: its version, addresses, and the routes of other
   * listeners, which are asked for at each request for the document.
   */
  readonly document: DocumentInfo & {
    readonly routes?: () => readonly DocumentedRoute[] | Promise<readonly DocumentedRoute[]>
  }
  /** Returns the page of a trace in the operators' tracing system, by its id. @default none */
  readonly traceUrl?: ((traceId: string) => string) | undefined
  /** The operator console at `/console/`. @default none */
  readonly console?: ConsoleOptions | undefined
  /** The time for clients to read answers with messages when the API closes, in ms; 0 does not wait. @default 1000 */
  readonly drainMs?: number
  /** The time between the answer to a destructive receive and its settlement, in ms; 0 settles at once. @default 250 */
  readonly settleGraceMs?: number
  /**
   * The longest wait of a command or query, in ms, whichever time-out it sets. Must be less than
   * the listener's response time-out. @default 170000
   */
  readonly maxWaitMs?: number
  /** Reports failures. @default none */
  readonly hooks?: ManagementHooks
}

/** The parts of the management API that its host uses in addition to the routes. */
export interface ManagementControl {
  /** For the Broker: statistics and the audit log see what passes from the first message on. */
  readonly observers: readonly BrokerObserver[]
  /** Records events of other components: the registry, authenticators, files that are read again. */
  readonly audit: AuditLog
  /** Counts calls of agents and deliveries to webhooks for `/api/map`. */
  readonly map: MapReports
  /** Initialization has finished. Until then `/api/*` and `/v1/stats/*`, but for the monitor, answer `api service not ready`. */
  serve(services: ManagementServices): void
  /**
   * Prepares for the close of the engine: ends waiting receives with an empty answer, settles
   * delivered messages, writes the audit log. Monitors and reading routes continue. `close` includes
   * it. Idempotent. @default graceMs the option `drainMs`
   */
  finish(graceMs?: number): Promise<void>
}
