import type { IncomingMessage } from 'node:http'

import type { Authenticator, FrontDoor, TrustedOrigins } from '@signalbox/http-kit'

import type { AuditLog, AuditLogOptions } from './audit/audit-log.ts'
import type { MonitorsOptions } from './monitor/monitors.ts'
import type { DocumentInfo } from './openapi/document.ts'
import type { DocumentedRoute } from './openapi/documented-route.ts'
import type { MetricsPort, NodeStatus } from './ports.ts'

export interface ManagementOptions {
  /**
   * Verifies callers. @default none: control-plane authentication is off, every caller acts as
   * Admin
   */
  readonly authenticator?: Authenticator | undefined
  /** @default auto */
  readonly trustedOrigins?: TrustedOrigins
  /** The address the server binds to, which `auto` trusts. @default none */
  readonly bindHost?: string
  /** Limits of callers and of the process, trusted proxies, allowed hosts; share one between listeners. @default the default limits, for this listener alone */
  readonly frontDoor?: FrontDoor
  /** @default 10485760 */
  readonly maxBodyBytes?: number
  /** The effective configuration for `/api/config`, secrets masked. @default {} */
  readonly config?: () => object
  /** Returns the state of this node, for `/api/snapshot`. */
  readonly node: () => Promise<NodeStatus>
  /** For `/metrics`. */
  readonly metrics: MetricsPort
  /** Open streams of server-sent events, by connector. @default none */
  readonly streams?: () => Readonly<Record<string, number>>
  readonly audit?: AuditLogOptions & {
    /** Audits every message, in addition to the other events. @default false */
    readonly messages?: boolean
    /**
     * The audit log, if it was created earlier because other components record in it too. @default
     * one of these options
     */
    readonly log?: AuditLog
  }
  /** Clients, and channels with errors, of which statistics are kept. @default 10000 of each */
  readonly statistics?: { readonly maxClients?: number; readonly maxChannels?: number }
  readonly monitors?: MonitorsOptions
  /**
   * Additional content of the OpenAPI document: its version, addresses, and the routes of other
   * listeners.
   */
  readonly document: DocumentInfo & { readonly routes?: () => readonly DocumentedRoute[] }
  /** The time between the answer to a destructive receive and its settlement, in ms. @default 250 */
  readonly settleGraceMs?: number
  /**
   * The longest wait of a command or query, in ms, whichever time-out it sets. Must be less than
   * the listener's response time-out. @default 170000
   */
  readonly maxWaitMs?: number
  /** Reports a failure that no operator gets. For the log; its errors are dropped. */
  readonly failed?: (error: unknown, request?: IncomingMessage) => void
}
