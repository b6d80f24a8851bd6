import type { IncomingMessage } from 'node:http'

import type { Authenticator, FrontDoor, TrustedOrigins } from '@signalbox/http-kit'

import type { AuditLog, AuditLogOptions } from './audit/audit-log.ts'
import type { MonitorsOptions } from './monitor/monitors.ts'
import type { DocumentInfo } from './openapi/document.ts'
import type { DocumentedRoute } from './openapi/documented-route.ts'
import type { MetricsPort, NodeStatus } from './ports.ts'

export interface ManagementOptions {
  /** Verifies callers. @default none: control-plane authentication is off, everybody acts as Admin (S3) */
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
  /** How this node is, for `/api/snapshot`. */
  readonly node: () => Promise<NodeStatus>
  /** For `/metrics`. */
  readonly metrics: MetricsPort
  /** Open streams of server-sent events, by connector. @default none */
  readonly streams?: () => Readonly<Record<string, number>>
  readonly audit?: AuditLogOptions & {
    /** Whether every message is audited, beside what always is. @default false */
    readonly messages?: boolean
    /** The log, where it was made before because others record in it too. @default one of these options */
    readonly log?: AuditLog
  }
  /** Clients, and channels with errors, of which statistics are kept. @default 10000 of each */
  readonly statistics?: { readonly maxClients?: number; readonly maxChannels?: number }
  readonly monitors?: MonitorsOptions
  /** What the OpenAPI document says beside the routes of this listener. */
  readonly document: DocumentInfo & { readonly routes?: () => readonly DocumentedRoute[] }
  /** Milliseconds between the answer to a destructive receive and its settlement (M14). @default 250 */
  readonly settleGraceMs?: number
  /**
   * The longest that a command or query is waited for, in milliseconds, whatever it asks for: less than what the listener
   * gives a response. @default 170000
   */
  readonly maxWaitMs?: number
  /** Something failed that no operator is told about. For the log; what it throws is dropped. */
  readonly failed?: (error: unknown, request?: IncomingMessage) => void
}
